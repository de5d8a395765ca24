#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to a trained network: installs what is missing, builds a release, and trains the demo CNN on the
# 60,000 images of Fashion-MNIST on the best OpenCL device. Shows progress, then the test accuracy, the time and where
# the memory went; leaves the weights in fashion-mnist-cnn.safetensors.
#
# Arguments are passed on to `cleave train fashion-mnist`: tools/demo.sh --device cpu --epochs 1
set -eu
cd "$(dirname "$0")/.."
tools/install-deps.sh
tools/build.sh release
case " $* " in *' --model'*) ;; *) set -- --model cnn "$@" ;; esac
case " $* " in *' --save '* | *' --save='*) ;; *) set -- --save fashion-mnist-cnn.safetensors "$@" ;; esac
exec build/release/cleave train fashion-mnist "$@"
