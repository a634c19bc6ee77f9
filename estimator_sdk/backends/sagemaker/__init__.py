"""Jobs in the cloud: what the backend `sagemaker` asks of Amazon SageMaker, CloudWatch Logs, STS, IAM and S3.

botocore is imported when a job is planned, run or attached to, not before.
"""
