"""A tape of TensorFlow on each rank's own numbers: the ranks agree only if Horovod averages."""

import hashlib
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
tf.random.set_seed(hvd.rank())
weights = tf.Variable(tf.random.normal([4, 1]))
hvd.broadcast_variables([weights], root_rank=0)
for _ in range(5):
    data = tf.random.normal([16, 4])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((data @ weights - tf.reduce_sum(data, 1, keepdims=True)) ** 2)
    tape = hvd.DistributedGradientTape(tape)
    weights.assign_sub(0.1 * tape.gradient(loss, [weights])[0])
every = hvd.allgather_object(hashlib.sha256(weights.numpy().tobytes()).hexdigest())
print("trained", hvd.size(), len(set(every)), tf.__version__, flush=True)
