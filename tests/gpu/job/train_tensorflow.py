"""Trains for some seconds on the GPU, if TensorFlow sees one, and says which."""

import json
import os
import time

import keras
import tensorflow as tf

SECONDS = 12.0
gpus = tf.config.list_physical_devices("GPU")
name = tf.config.experimental.get_device_details(gpus[0])["device_name"] if gpus else None
print(json.dumps({"device": name, "uuid": None, "visible": os.environ.get("CUDA_VISIBLE_DEVICES", "")}), flush=True)

width = 2048 if gpus else 64
model = keras.Sequential([keras.layers.Dense(width) for _ in range(4)])
model.compile(keras.optimizers.SGD(0.001), loss="mse")
samples = tf.data.Dataset.from_tensor_slices(tf.random.normal((4096, width))).batch(256)
began = time.monotonic()
while time.monotonic() - began < SECONDS:
    model.fit(samples.map(lambda batch: (batch, batch)), verbose=0)
