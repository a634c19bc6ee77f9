"""Jobs in the cloud: what the backend `sagemaker` asks of Amazon SageMaker, CloudWatch Logs, STS, IAM and S3.

botocore is imported when a job is planned, run or attached to, not before.
"""

from __future__ import annotations

from ..port import Capabilities

CAPABILITIES = Capabilities(is_remote=True)
"""Here, so that they can be asked for without what the backend itself needs."""
