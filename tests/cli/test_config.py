"""Where settings come from: flags, -X, environment, contexts, Java properties; secrets stay hidden."""

from pathlib import Path

import jsonschema
import pytest

from kgroup.cli.env import settings as settings_of
from kgroup.cli.env.config import LocalTarget, RemoteTarget, load_config, target_of
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.properties import parse_properties
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.tree import expand_local
from kgroup.cli.schemas import schema_for
from kgroup.client.auth.credentials import Password
from kgroup.client.tls.values import Tls
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError

CONTEXTS = """\
# clusters of the team
current-context: dev
contexts:
  dev:
    local: ~/kgroup-dev
  prod:   # careful
    bootstrap-servers: [a:9092, b:9093]
    timeout: 5s
    properties:
      security.protocol: SASL_SSL
      sasl.mechanism: SCRAM-SHA-512
      sasl.username: ops
      sasl.password: hunter2
"""
OPTIONS = {
    "bootstrap_server": None,
    "local": None,
    "context": None,
    "command_config": None,
    "property_": None,
    "timeout": None,
    "output": None,
    "columns": None,
    "no_headers": False,
    "color": None,
    "quiet": False,
    "verbose": False,
    "debug": False,
}


def settings(environ=None, **options):
    return Env.of("config show", {**OPTIONS, **options}, environ or {}).settings()


def origins(resolved):
    return {name: (s.value, s.origin) for name, s in resolved.settings.items()}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("250ms", 0.25), ("30s", 30), ("5m", 300), ("2h", 7200), ("1d", 86400)],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "5x", "inf", "nans", "5 s s"])
def test_bad_durations(text):
    with pytest.raises(ConfigError):
        parse_duration(text)


class TestPrecedence:
    def test_flag_beats_x_beats_environment_beats_context_beats_default(self, config_file):
        config_file.write_text(CONTEXTS)
        config_file.chmod(0o600)
        environ = {"KGROUP_BOOTSTRAP_SERVER": "env:1", "KAFKA_BOOTSTRAP_SERVERS": "other:1"}
        x = {"property_": ["bootstrap.servers=x:1"]}
        for resolved, where in (
            (settings(environ, bootstrap_server="flag:1", **x), ("flag:1", "--bootstrap-server")),
            (settings(environ, **x), ("x:1", "-X")),
            (settings(environ), ("env:1", "KGROUP_BOOTSTRAP_SERVER")),
            (settings(environ, context="prod"), ("a:9092,b:9093", "context prod")),
            (settings(context="prod"), ("a:9092,b:9093", "context prod")),
        ):
            assert origins(resolved)["bootstrap.servers"] == where
        assert origins(settings(context="prod"))["client.id"] == ("kgroup", "default")

    def test_the_timeout_of_a_context_and_of_a_flag(self, config_file):
        config_file.write_text(CONTEXTS)
        config_file.chmod(0o600)
        assert settings(context="prod").timeout_s() == 5
        assert settings(context="prod", timeout="250ms").timeout_s() == 0.25
        assert settings(context="prod", property_=["request.timeout.ms=7000"]).timeout_s() == 7
        assert settings(bootstrap_server="a:1").timeout_s() == 30

    def test_a_command_config_file_ranks_below_x_and_above_the_environment(self, tmp_path):
        file = tmp_path / "client.properties"
        file.write_text("security.protocol=SSL\nclient.id=from-file\n")
        resolved = settings(
            {"KGROUP_BOOTSTRAP_SERVER": "env:1"}, command_config=str(file), property_=["client.id=x"]
        )
        assert origins(resolved)["client.id"] == ("x", "-X")
        assert origins(resolved)["security.protocol"] == ("SSL", str(file))

    def test_a_command_reads_its_files_once(self, on_cluster, tmp_path, monkeypatch):
        """So a properties file may be a pipe, and no command ends with other settings than it began with."""
        file = tmp_path / "client.properties"
        file.write_text("client.id=from-file\n")
        read, original = [], settings_of.read_command_config
        monkeypatch.setattr(
            settings_of, "read_command_config", lambda path: read.append(path) or original(path)
        )
        assert on_cluster("replay-log", "--command-config", str(file)).code == 0
        assert read == [file]

    def test_credentials_of_the_current_context_do_not_follow_to_another_cluster(self, config_file):
        config_file.write_text(CONTEXTS.replace("current-context: dev", "current-context: prod"))
        config_file.chmod(0o600)
        assert settings().get("sasl.password") == "hunter2"
        for resolved in (
            settings(bootstrap_server="elsewhere:9092"),
            settings({"KGROUP_BOOTSTRAP_SERVER": "elsewhere:9092"}),
            settings({"KGROUP_CONTEXT": "prod"}, bootstrap_server="elsewhere:9092"),
        ):
            assert resolved.get("sasl.password") is None

    def test_a_context_on_the_command_line_replaces_the_environment(self, config_file, tmp_path):
        """A change that was meant for prod must not hit the cluster of a variable, and with prod's login."""
        config_file.write_text(CONTEXTS)
        config_file.chmod(0o600)
        file = tmp_path / "other.properties"
        file.write_text("bootstrap.servers=elsewhere:1\nsasl.username=mallory\nssl.ca.location=/x\n")
        alone = origins(settings(context="prod"))
        for environ in (
            {"KGROUP_BOOTSTRAP_SERVER": "elsewhere:1"},
            {"KGROUP_LOCAL": "/tmp/x"},
            {"KGROUP_CONTEXT": "dev"},
            {"KGROUP_COMMAND_CONFIG": str(file)},
            {"KGROUP_REST_USERNAME": "mallory", "KGROUP_REST_PASSWORD": "x", "KGROUP_REST_TOKEN": "y"},
            {"KAFKA_BOOTSTRAP_SERVERS": "elsewhere:1"},
        ):
            assert origins(settings(environ, context="prod")) == alone, environ

    @pytest.mark.parametrize(
        "options",
        [
            {"bootstrap_server": "elsewhere:1"},
            {"local": ""},
            {"property_": ["bootstrap.servers=elsewhere:1"]},
            {"command_config": "FILE"},
        ],
    )
    def test_a_context_and_another_cluster_exclude_each_other(self, options, config_file, tmp_path):
        config_file.write_text(CONTEXTS)
        config_file.chmod(0o600)
        file = tmp_path / "other.properties"
        file.write_text("bootstrap.servers=elsewhere:1\n")
        options = {name: str(file) if value == "FILE" else value for name, value in options.items()}
        with pytest.raises(ConfigError, match="^--context and .* both name a cluster$"):
            settings(context="prod", **options)

    @pytest.mark.parametrize("variable", ["KGROUP_BOOTSTRAP_SERVER", "KGROUP_LOCAL", "KGROUP_COMMAND_CONFIG"])
    def test_variables_that_name_two_clusters_exclude_each_other(self, variable, config_file, tmp_path):
        config_file.write_text(CONTEXTS)
        config_file.chmod(0o600)
        file = tmp_path / "other.properties"
        file.write_text("bootstrap.servers=elsewhere:1\n")
        with pytest.raises(ConfigError, match="^KGROUP_CONTEXT and .* both name a cluster$"):
            settings({"KGROUP_CONTEXT": "prod", variable: str(file)})

    def test_other_tools_variable_names_the_cluster_when_nothing_else_does(
        self, config_file, cluster, kgroup, monkeypatch
    ):
        brokers = {"KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrap}
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", cluster.bootstrap)
        ran = kgroup("list", "-o", "name")
        assert ran.code == ExitCode.OK
        assert f"cluster: {cluster.bootstrap} (KAFKA_BOOTSTRAP_SERVERS)" in ran.err
        config_file.write_text(CONTEXTS)
        config_file.chmod(0o600)
        assert target_of(settings(brokers)) == LocalTarget(Path("~/kgroup-dev").expanduser())

    def test_verbose_and_the_head_of_a_plan_say_which_cluster_and_why(self, on_cluster, cluster):
        line = f"cluster: {cluster.bootstrap} (--bootstrap-server)"
        assert line in on_cluster("list", "-v").err
        assert line not in on_cluster("list").out
        plan = on_cluster("delete", "none")
        assert plan.out.splitlines()[0] == line, plan.err


class TestTarget:
    def test_default_is_the_embedded_cluster_in_the_data_folder(self, tmp_path):
        assert target_of(settings()) == LocalTarget(tmp_path / "data" / "kgroup" / "cluster")
        assert target_of(settings(local="")) == LocalTarget(tmp_path / "data" / "kgroup" / "cluster")

    def test_local_folder_by_flag_and_environment(self, tmp_path):
        assert target_of(settings(local=str(tmp_path))) == LocalTarget(tmp_path)
        assert target_of(settings({"KGROUP_LOCAL": "~/c"})) == LocalTarget(Path("~/c").expanduser())

    def test_a_flag_beats_the_environment_whatever_it_names(self, tmp_path):
        environ = {"KGROUP_BOOTSTRAP_SERVER": "env:1"}
        assert target_of(settings(environ, local=str(tmp_path))) == LocalTarget(tmp_path)

    def test_two_clusters_at_once_is_an_error(self):
        with pytest.raises(ConfigError, match="--local and --bootstrap-server both name a cluster"):
            target_of(settings(local="", bootstrap_server="a:1"))

    def test_a_context_becomes_a_connection(self, config_file):
        config_file.write_text(CONTEXTS)
        config_file.chmod(0o600)
        target = target_of(settings(context="prod"))
        assert isinstance(target, RemoteTarget)
        connection = target.connection
        assert connection.bootstrap == (("a", 9092), ("b", 9093))
        assert connection.security.protocol == "SASL_SSL"
        assert connection.security.credentials == Password("SCRAM-SHA-512", "ops", "hunter2")
        assert connection.request_timeout_s == 5
        assert connection.security.tls == Tls(endpoint_identification=True)

    def test_host_name_check_can_be_turned_off(self):
        for value in ("", "none"):
            option = f"ssl.endpoint.identification.algorithm={value}"
            target = target_of(settings(bootstrap_server="a:1", property_=["security.protocol=ssl", option]))
            assert isinstance(target, RemoteTarget)
            assert target.connection.security.tls == Tls(endpoint_identification=False)

    def test_a_misspelt_setting_is_refused_with_the_right_one(self):
        with pytest.raises(ConfigError, match="no such setting") as caught:
            settings(property_=["sasl.pasword=x"])
        assert caught.value.hint == "did you mean sasl.password?"

    @pytest.mark.parametrize(
        ("argv", "expanded"),
        [
            (["list", "--local"], ["list", "--local", ""]),
            (["list", "--local", "pay*"], ["list", "--local", "", "pay*"]),
            (["list", "--local", "./c", "pay*"], ["list", "--local", "./c", "pay*"]),
            (["list", "--local", "~"], ["list", "--local", "~"]),
            (["list", "--local=c"], ["list", "--local=c"]),
            (["list", "--", "--local"], ["list", "--", "--local"]),
        ],
    )
    def test_local_takes_the_next_word_only_when_it_looks_like_a_path(self, argv, expanded):
        assert expand_local(argv) == expanded


class TestConfigFile:
    def test_secrets_others_may_read_are_refused(self, config_file, kgroup):
        config_file.write_text(CONTEXTS)
        config_file.chmod(0o640)
        ran = kgroup("context", "list")
        assert ran.code == ExitCode.USAGE
        assert "others may read it (mode 0640)" in ran.err
        assert f"hint: chmod 600 {config_file}" in ran.err
        assert "hunter2" not in ran.err

    def test_without_secrets_any_mode_will_do(self, config_file):
        config_file.write_text("contexts: {a: {bootstrap-servers: 'a:1'}}\n")
        config_file.chmod(0o644)
        assert load_config().contexts["a"].bootstrap_servers == "a:1"

    @pytest.mark.parametrize(
        "text",
        [
            "contexts: [",
            "- a",
            "contexts: [a]",
            "contexts: {a: b}",
            "contexts: {a: {host: b}}",
            "contexts: {a: {local: x, bootstrap-servers: 'y:1'}}",
            "contexts: {a: {properties: {no.such: 1}}}",
        ],
    )
    def test_malformed_files_are_a_usage_error_without_traceback(self, config_file, kgroup, text):
        config_file.write_text(text)
        ran = kgroup("context", "list")
        assert ran.code == ExitCode.USAGE
        assert ran.err.startswith("error: ") and "Traceback" not in ran.err

    def test_use_changes_one_line_and_keeps_the_comments(self, config_file, kgroup):
        config_file.write_text(CONTEXTS)
        config_file.chmod(0o600)
        ran = kgroup("context", "use", "prod", "-o", "json")
        jsonschema.validate(ran.document, schema_for("context use"))
        assert config_file.read_text() == CONTEXTS.replace("current-context: dev", 'current-context: "prod"')
        assert config_file.stat().st_mode & 0o777 == 0o600
        assert kgroup("context", "list", "--no-headers").out.split()[:3] == ["no", "dev", "embedded"]

    def test_use_of_an_unknown_context_lists_the_known(self, config_file, kgroup):
        config_file.write_text(CONTEXTS)
        config_file.chmod(0o600)
        for command in ("use", "show"):
            ran = kgroup("context", command, "nope")
            assert ran.code == ExitCode.NOT_FOUND
            assert "hint: known: dev, prod" in ran.err

    def test_without_a_context_the_form_of_one_is_shown_and_it_is_right(self, config_file, kgroup):
        """It named a file that is not there, and no form of it."""
        first, *form = kgroup("context", "list").err.splitlines()
        assert first.startswith("no contexts; write them into ")
        config_file.write_text("\n".join(form))
        assert kgroup("context", "list", "-o", "name").out == "prod\n"

    def test_no_context_at_all(self, kgroup):
        assert kgroup("context", "list").code == 0
        assert kgroup("context", "show").code == ExitCode.NOT_FOUND


class TestSecrets:
    @pytest.mark.parametrize("format_", ["table", "wide", "json", "yaml", "csv", "ndjson", "name"])
    def test_never_printed(self, config_file, kgroup, format_):
        config_file.write_text(CONTEXTS)
        config_file.chmod(0o600)
        for argv in (
            ("config", "show", "-C", "prod", "--origin"),
            ("context", "show", "prod"),
            ("context", "list"),
        ):
            ran = kgroup(*argv, "-o", format_, "-v", "--debug")
            assert ran.code == 0
            assert "hunter2" not in ran.out + ran.err

    def test_never_in_a_repr(self):
        resolved = settings(
            bootstrap_server="a:1",
            property_=[
                "security.protocol=SASL_SSL",
                "sasl.mechanisms=PLAIN",
                "sasl.username=u",
                "sasl.password=hunter2",
            ],
        )
        assert "hunter2" not in repr(target_of(resolved))
        assert resolved.get("sasl.password") == "hunter2"
        assert "hunter2" not in repr(resolved)
        assert "Setting(name='sasl.password', origin=" in repr(resolved)

    def test_schemas(self, config_file, kgroup):
        config_file.write_text(CONTEXTS)
        config_file.chmod(0o600)
        for argv in (("config", "show"), ("context", "show", "prod"), ("context", "list")):
            jsonschema.validate(kgroup(*argv, "-o", "json").document, schema_for(" ".join(argv[:2])))


class TestJavaProperties:
    def test_syntax_of_java_util_properties(self):
        lines = [
            *("# comment", "! another", " a = 1", "b:2", "c 3", "d=x\\", "    y"),
            *("key\\ with\\:odd=v\\u00e9\\t!", "empty=", "bare", ""),
        ]
        text = "\n".join(lines)
        assert parse_properties(text) == {
            "a": "1",
            "b": "2",
            "c": "3",
            "d": "xy",
            "key with:odd": "vé\t!",
            "empty": "",
            "bare": "",
        }

    def test_a_missing_file(self, kgroup):
        ran = kgroup("config", "show", "--command-config", "no/such.properties")
        assert ran.code == ExitCode.USAGE
        assert "cannot read the command config no/such.properties: No such file" in ran.err
