"""Fetch a channel as SageMaker's local mode does, and print the seconds: `sagemaker_channel.py BUCKET PREFIX`."""

import os
import sys
import tempfile
import time

with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as defaults:
    defaults.write("SchemaVersion: '1.0'\nSageMaker: {PythonSDK: {Modules: {TelemetryOptOut: true}}}\n")
os.environ["SAGEMAKER_USER_CONFIG_OVERRIDE"] = defaults.name

import boto3
from sagemaker.local import LocalSession
from sagemaker.local.data import S3DataSource

bucket, prefix = sys.argv[1:]
session = LocalSession(boto3.Session(), s3_endpoint_url=os.environ["AWS_ENDPOINT_URL_S3"])
with tempfile.TemporaryDirectory() as folder:
    session.config = {"local": {"container_root": folder}}
    started = time.perf_counter()
    S3DataSource(bucket, prefix, session).get_root_dir()
    print(time.perf_counter() - started)
os.unlink(defaults.name)  # noqa: PTH108
