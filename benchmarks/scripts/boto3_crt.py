"""Moves a folder with boto3's transfers on the AWS CRT, and prints the seconds, and those of the CPUs.

    boto3_crt.py up|down FOLDER BUCKET PREFIX

It is what `boto3.client("s3").upload_file` does with `preferred_transfer_client="crt"`, which itself knows no server
without TLS.
"""

import os
import sys
import time
from pathlib import Path

import botocore.session
from s3transfer.crt import (
    BotocoreCRTCredentialsWrapper,
    BotocoreCRTRequestSerializer,
    CRTTransferManager,
    create_s3_crt_client,
)

direction, folder, bucket, prefix = sys.argv[1:]
session = botocore.session.Session()
endpoint, region = os.environ["AWS_ENDPOINT_URL_S3"], os.environ.get("AWS_REGION", "us-east-1")
settings = {"endpoint_url": endpoint, "region_name": region}
credentials = BotocoreCRTCredentialsWrapper(session.get_credentials()).to_crt_credentials_provider()
client = create_s3_crt_client(region, credentials, use_ssl=endpoint.startswith("https"))
started, used = time.perf_counter(), time.process_time()
with CRTTransferManager(client, BotocoreCRTRequestSerializer(session, dict(settings))) as manager:
    if direction == "up":
        moves = [manager.upload(str(path), bucket, f"{prefix}/{path.name}") for path in Path(folder).iterdir()]
    else:
        pages = session.create_client("s3", **settings).get_paginator("list_objects_v2")
        keys = [each["Key"] for page in pages.paginate(Bucket=bucket, Prefix=f"{prefix}/") for each in page["Contents"]]
        moves = [manager.download(bucket, key, str(Path(folder, key.rpartition("/")[2]))) for key in keys]
    for each in moves:
        each.result()
print(time.perf_counter() - started, time.process_time() - used)
