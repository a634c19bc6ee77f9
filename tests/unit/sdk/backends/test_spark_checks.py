"""What `estimator doctor --backend spark` says of this machine."""

from estimator_sdk.backends.spark.backend import SparkBackend


def test_what_a_session_needs_is_looked_for(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    pyspark, java = SparkBackend().check()
    assert pyspark.is_there
    assert (java.is_there, java.detail) == (True, str(program))
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    java = list(SparkBackend().check())[1]
    assert (java.is_there, java.detail) == (False, "JAVA_HOME is /nowhere, but /nowhere/bin/java is no program")
    assert java.fix == "unset JAVA_HOME"
    program.unlink()
    monkeypatch.delenv("JAVA_HOME")
    java = list(SparkBackend().check())[1]
    assert (java.is_there, java.fix) == (False, "apt-get install default-jre-headless")
