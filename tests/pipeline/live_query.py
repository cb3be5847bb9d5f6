"""A streaming query over the live topic, in a process of its own: to be killed."""

import sys

from kgroup.pipeline.read.source import NAME, OffsetsLogSource
from kgroup.pipeline.spark.session import spark_session


def started(spark: object, bootstrap: str, out: str, **trigger: object) -> object:
    """Commits of the live topic into Parquet below `out`, on from the checkpoint beside it."""
    spark.dataSource.register(OffsetsLogSource)  # type: ignore[attr-defined]
    stream = spark.readStream.format(NAME).option("bootstrap.servers", bootstrap).load()  # type: ignore[attr-defined]
    sink = stream.writeStream.format("parquet").option("path", f"{out}/commits")
    return sink.option("checkpointLocation", f"{out}/checkpoint").trigger(**trigger).start()


if __name__ == "__main__":
    with spark_session("local[1]", {"spark.sql.shuffle.partitions": "1"}) as session:
        started(session, *sys.argv[1:], processingTime="100 milliseconds").awaitTermination()  # type: ignore[attr-defined]
