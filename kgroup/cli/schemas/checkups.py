"""The schema of a check-up, of `doctor` and `explain`."""

from kgroup.admin.diagnose.checks import Diagnosis
from kgroup.admin.diagnose.doctor import VERDICTS, Alike
from kgroup.admin.models import GroupType
from kgroup.cli.schemas.derive import schema_of
from kgroup.cli.schemas.parts import BOOLEAN, INTEGER, STRING, array, note, nullable, one_of, record

CHECKUP = record(
    group_id=STRING,
    type=schema_of(GroupType),
    state=STRING,
    verdict=one_of(*VERDICTS),
    healthy=note(nullable(BOOLEAN), "null for unknown"),
    findings=array(schema_of(Diagnosis)),
    statuses=note(array(schema_of(Alike)), "of the partitions, worst first"),
    skipped=note(array(STRING), "what could not be read"),
)
RECORDED = record(
    at_ms=INTEGER,
    at=STRING,
    seen_ms=note(nullable(INTEGER), "the look that showed it"),
    seen=nullable(STRING),
    next_ms=note(nullable(INTEGER), "the look after it; what began and ended between two is unknown"),
    interval_ms=nullable(INTEGER),
    unknown=note(nullable(STRING), "why nothing is known of that moment; null where it is"),
    log_not_recorded=note(nullable(STRING), "why `__consumer_offsets` was not recorded; null where it was"),
)
