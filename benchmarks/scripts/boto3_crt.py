"""Moves a folder with boto3 on the AWS CRT, and prints the seconds: `boto3_crt.py up|down FOLDER BUCKET PREFIX`."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import boto3
from boto3.s3.transfer import TransferConfig

direction, folder, bucket, prefix = sys.argv[1:]
client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL_S3"])
config = TransferConfig(preferred_transfer_client="crt")


def up(path: Path) -> None:
    client.upload_file(str(path), bucket, f"{prefix}/{path.name}", Config=config)


def down(key: str) -> None:
    client.download_file(bucket, key, str(Path(folder, key.rpartition("/")[2])), Config=config)


started = time.perf_counter()
with ThreadPoolExecutor(32) as pool:
    if direction == "up":
        list(pool.map(up, Path(folder).iterdir()))
    else:
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
        list(pool.map(down, [each["Key"] for page in pages for each in page["Contents"]]))
print(time.perf_counter() - started)
