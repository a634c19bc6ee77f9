"""A server of a TensorFlow cluster, as TF_CONFIG has it: `python -m estimator_container.worlds.tensorflow_server`."""

from __future__ import annotations

import os


def main() -> None:
    """Serve until this process is ended."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Parameters are kept in memory; the accelerators are for the script beside this.
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    import tensorflow as tf

    task = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(
        task.cluster_spec(), job_name=task.task_type, task_index=task.task_id, protocol=task.rpc_layer or "grpc"
    )
    server.join()


if __name__ == "__main__":
    main()
