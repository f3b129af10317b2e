"""Datasets: made from graphs, drawn in classes, read from files and frames, whole or in blocks."""

from cgprimer.data.blocks import Blocks as Blocks
from cgprimer.data.blocks import dataset_of as dataset_of
from cgprimer.data.blocks import whole_dataset as whole_dataset
from cgprimer.data.classes import make_classes as make_classes
from cgprimer.data.dataset import Dataset as Dataset
from cgprimer.data.making import make_dataset as make_dataset
from cgprimer.data.normalization import normalized as normalized
from cgprimer.data.normalization import restored as restored
from cgprimer.data.normalization import scales_of as scales_of
