"""moto's server with training jobs that do not end by themselves: `service.py PORT`, run by the Python of moto.

Besides the API of AWS it takes `POST /training-jobs/NAME` with members of DescribeTrainingJob, which it says from then
on. moto lacks StopTrainingJob, and the refusal of a name that is taken; both are added here.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable
from datetime import datetime, timezone

from moto.core.responses import ActionResult, EmptyResult
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.sagemaker import exceptions, models
from moto.sagemaker.responses import SageMakerResponse
from werkzeug.serving import run_simple

ACCOUNT = "123456789012"
ENDED = ("Completed", "Failed", "Stopped")


class LimitExceeded(exceptions.SagemakerClientError):
    code = "ResourceLimitExceeded"


def begin(job, request) -> None:
    """A job's description is its request and what it is told later."""
    now = datetime.now(timezone.utc)
    job.document = {**request, "TrainingJobArn": job.arn, "CreationTime": now, "LastModifiedTime": now}
    job.document.pop("Tags", None)
    tell(job, {"TrainingJobStatus": "InProgress", "SecondaryStatus": "Starting"})


def tell(job, members) -> None:
    for name, value in members.items():
        job.document[name] = datetime.fromtimestamp(value, timezone.utc) if name.endswith("Time") else value
    job.training_job_status = job.document["TrainingJobStatus"]


def create_training_job(self):
    request = json.loads(self.body)
    jobs = self.sagemaker_backend.training_jobs
    if request["TrainingJobName"] in jobs:
        raise exceptions.ResourceInUseException("Training job names must be unique within an AWS account and region")
    if request["RoleArn"].endswith("/unknown"):
        raise exceptions.AWSValidationException(f"Could not assume role {request['RoleArn']}. Please ensure it exists")
    if request["ResourceConfig"].get("InstanceCount", 1) > 100:
        message = "The account-level service limit 'ml.m5.xlarge for training job usage' is 100 Instances"
        raise LimitExceeded(message)
    answer = moto_creates(self)
    job = jobs.pop(request["TrainingJobName"])
    begin(job, request)
    others = dict(jobs)
    jobs.clear()
    jobs.update({request["TrainingJobName"]: job, **others})  # as asked for by SortOrder: the newest first
    return answer


def stop_training_job(self):
    job = self.sagemaker_backend.training_jobs[self._get_param("TrainingJobName")]
    if job.document["TrainingJobStatus"] in ENDED:
        message = f"The request was rejected because the training job is in status {job.training_job_status}"
        raise exceptions.AWSValidationException(message)
    tell(job, {"TrainingJobStatus": "Stopping", "SecondaryStatus": "Stopping"})
    return EmptyResult()


def describe_training_job(self):
    return ActionResult(self.sagemaker_backend.describe_training_job(self._get_param("TrainingJobName")))


models.FakeTrainingJob.response_object = property(lambda job: job.document)
moto_creates = SageMakerResponse.create_training_job
SageMakerResponse.create_training_job = create_training_job
SageMakerResponse.stop_training_job = stop_training_job
SageMakerResponse.describe_training_job = describe_training_job


def with_driver(application: Callable) -> Callable:
    def answered(environ, start_response) -> Iterable[bytes]:
        if not environ["PATH_INFO"].startswith("/training-jobs/"):
            return application(environ, start_response)
        name = environ["PATH_INFO"].rpartition("/")[2]
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        regions = models.sagemaker_backends[ACCOUNT].values()
        (job,) = (backend.training_jobs[name] for backend in regions if name in backend.training_jobs)
        tell(job, json.loads(body))
        start_response("204 No Content", [])
        return []

    return answered


if __name__ == "__main__":
    logging.getLogger("werkzeug").addHandler(logging.StreamHandler(sys.stdout))
    application = with_driver(DomainDispatcherApplication(create_backend_app))
    run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True)
