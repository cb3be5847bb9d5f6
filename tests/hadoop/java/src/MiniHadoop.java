import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * HDFS, and YARN if asked for, in this JVM and on loopback; until stdin ends.
 *
 * <p>Arguments: a folder for all it writes, where clients' configuration (core-site.xml and the others) goes,
 * how many data nodes, how many node managers (0: no YARN), and settings as KEY=VALUE. When all of it is up it
 * prints one line: the address of HDFS and that of WebHDFS.
 */
public final class MiniHadoop {
  private static final String LOOPBACK = "127.0.0.1";
  private static final Pattern FOR_CLIENTS =
      Pattern.compile("fs\\.defaultFS|dfs\\.replication|(dfs|yarn)\\..*(address|hostname)");

  private MiniHadoop() {}

  public static void main(String[] args) {
    try {
      run(args);
      System.exit(0);
    } catch (Exception | Error error) {
      // Threads that have come up would keep the JVM.
      error.printStackTrace();
      System.exit(1);
    }
  }

  private static void run(String[] args) throws Exception {
    Path work = Path.of(args[0]);
    Path conf = Path.of(args[1]);
    int dataNodes = Integer.parseInt(args[2]);
    int nodeManagers = Integer.parseInt(args[3]);
    YarnConfiguration settings = new YarnConfiguration(new HdfsConfiguration());
    settings.set("dfs.replication", Integer.toString(Math.min(dataNodes, 3)));
    settings.set("hadoop.tmp.dir", work.resolve("tmp").toString());
    String[] asked = Arrays.copyOfRange(args, 4, args.length);
    for (String setting : asked) {
      settings.set(setting.split("=", 2)[0], setting.split("=", 2)[1]);
    }
    MiniDFSCluster hdfs =
        new MiniDFSCluster.Builder(settings, work.resolve("hdfs").toFile()).numDataNodes(dataNodes).build();
    hdfs.waitActive();
    settings.set("fs.defaultFS", hdfs.getURI().toString());
    MiniYARNCluster yarn = nodeManagers > 0 ? yarn(settings, work, nodeManagers) : null;
    write(yarn == null ? settings : yarn.getConfig(), asked, conf);
    System.out.println(hdfs.getURI() + " " + hdfs.getHttpUri(0));
    System.out.flush();
    System.in.transferTo(OutputStream.nullOutputStream());
    if (yarn != null) {
      yarn.stop();
    }
    hdfs.shutdown();
  }

  private static MiniYARNCluster yarn(YarnConfiguration settings, Path work, int nodeManagers) throws Exception {
    settings.set("yarn.resourcemanager.hostname", LOOPBACK);
    settings.setInt("yarn.scheduler.minimum-allocation-mb", 128);
    settings.set("yarn.scheduler.capacity.root.queues", "default");
    settings.set("yarn.scheduler.capacity.root.default.capacity", "100");
    settings.set("yarn.scheduler.capacity.maximum-am-resource-percent", "1");
    settings.setBoolean("yarn.nodemanager.vmem-check-enabled", false);
    settings.setBoolean("yarn.nodemanager.pmem-check-enabled", false);
    settings.setBoolean("yarn.nodemanager.disk-health-checker.enable", false);
    MiniYARNCluster made = new MiniYARNCluster("kgroup", nodeManagers, 1, 1);
    made.init(settings);
    made.start();
    if (!made.waitForNodeManagersToConnect(60_000)) {
      throw new IllegalStateException("no node manager has come up");
    }
    return made;
  }

  /** What a client needs to find both, and what was asked for; other settings are of the servers' insides. */
  private static void write(Configuration settings, String[] asked, Path conf) throws Exception {
    Files.createDirectories(conf);
    Configuration told = new Configuration(false);
    for (Map.Entry<String, String> setting : settings) {
      if (FOR_CLIENTS.matcher(setting.getKey()).matches()) {
        told.set(setting.getKey(), setting.getValue());
      }
    }
    for (String setting : asked) {
      told.set(setting.split("=", 2)[0], setting.split("=", 2)[1]);
    }
    for (String name : new String[] {"core-site.xml", "hdfs-site.xml", "yarn-site.xml"}) {
      try (OutputStream file = Files.newOutputStream(conf.resolve(name))) {
        told.writeXml(file);
      }
    }
  }
}
