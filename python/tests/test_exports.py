"""Exported files are taken by the engines' own loaders, where these are installed."""

import json
import os
import pathlib
import subprocess

import pytest

PROGRAM = os.environ.get("PLACET_PROGRAM", "")
pytestmark = pytest.mark.skipif(
    not pathlib.Path(PROGRAM).is_file(), reason="PLACET_PROGRAM names no built program"
)

# 64 samples on 8 devices, one at a time.
JOB = ("llama-3.1-8b", "--cluster", "h100-sxm:1", "--seq", "4096", "--global-batch", "64")


def exported(folder: pathlib.Path, dialect: str, placement: str, *words: str) -> pathlib.Path:
    subprocess.run(
        [PROGRAM, "export", *JOB, "--placement", placement, "--to", dialect, *words]
        + ["-o", str(folder)],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.mark.parametrize(
    "placement", ["dp=8:fsdp", "dp=8:fsdp+keep", "rep=2:ddp dp=4:fsdp", "dp=4:fsdp tp=2:tp", "dp=8:ddp"]
)
def test_accelerate(tmp_path: pathlib.Path, placement: str) -> None:
    config_args = pytest.importorskip("accelerate.commands.config.config_args")
    file = exported(tmp_path, "accelerate", placement) / "accelerate.yaml"
    config = config_args.load_config_from_file(str(file))
    assert config.num_processes == 8
    if placement == "dp=8:ddp":
        assert config.distributed_type == "MULTI_GPU"
        return
    assert config.distributed_type == "FSDP"
    assert config.fsdp_config["fsdp_reshard_after_forward"] is ("keep" not in placement)
    sizes = config.parallelism_config
    product = 1
    for axis in ("dp_replicate", "dp_shard", "tp", "cp"):
        product *= sizes[f"parallelism_config_{axis}_size"]
    assert product == 8


@pytest.mark.parametrize(
    "placement", ["dp=8:zero1", "dp=8:zero2", "dp=8:zero3", "dp=8:zero3+offload(optimizer)"]
)
def test_deepspeed(tmp_path: pathlib.Path, placement: str) -> None:
    config_module = pytest.importorskip("deepspeed.runtime.config")

    class Mesh:
        """As many data-parallel copies as the job has."""

        @staticmethod
        def get_data_parallel_world_size() -> int:
            return 8

    file = exported(tmp_path, "deepspeed", placement) / "ds_config.json"
    config = config_module.DeepSpeedConfig(str(file), mpu=Mesh())
    assert config.train_batch_size == 64
    assert config.gradient_accumulation_steps == 8
    assert config.zero_config.stage == int(placement.split("zero")[1][0])


def test_trainer_takes_the_deepspeed_file(tmp_path: pathlib.Path) -> None:
    integration = pytest.importorskip("transformers.integrations.deepspeed")
    file = exported(tmp_path, "deepspeed", "dp=8:zero3") / "ds_config.json"
    config = integration.HfDeepSpeedConfig(json.loads(file.read_text()))
    assert config.is_zero3()


@pytest.mark.parametrize("placement", ["dp=8:fsdp", "pp=2:1f1b dp=4:fsdp+keep-step"])
def test_torchtitan(tmp_path: pathlib.Path, placement: str) -> None:
    # Versions from the spring of 2026 on read no TOML.
    manager = pytest.importorskip("torchtitan.config")
    if not hasattr(manager, "ConfigManager"):
        pytest.skip("this version of torchtitan reads no TOML")
    file = exported(tmp_path, "torchtitan", placement) / "train.toml"
    config = manager.ConfigManager().parse_args([f"--job.config_file={file}"])
    assert config.training.seq_len == 4096
    assert config.training.global_batch_size == 64


def test_nanotron(tmp_path: pathlib.Path) -> None:
    config_module = pytest.importorskip("nanotron.config")
    yaml = pytest.importorskip("yaml")
    file = exported(tmp_path, "nanotron", "dp=4:zero1 tp=2:tp+sp") / "config.yaml"
    said = yaml.safe_load(file.read_text())["parallelism"]
    parallelism = config_module.ParallelismArgs(**said)
    assert (parallelism.dp, parallelism.tp, parallelism.pp) == (4, 2, 1)
