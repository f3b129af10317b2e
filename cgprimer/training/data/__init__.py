"""Datasets: made from graphs, drawn in classes, read from files and frames, whole or in blocks."""

from cgprimer.training.data.blocks import Blocks as Blocks
from cgprimer.training.data.blocks import dataset_of as dataset_of
from cgprimer.training.data.blocks import whole_dataset as whole_dataset
from cgprimer.training.data.class_samples import make_classes as make_classes
from cgprimer.training.data.data_generation import make_dataset as make_dataset
from cgprimer.training.data.dataset import Dataset as Dataset
from cgprimer.training.data.normalization import normalized as normalized
from cgprimer.training.data.normalization import restored as restored
from cgprimer.training.data.normalization import scales_of as scales_of
