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
    "placement",
    [
        "dp=8:fsdp",
        "dp=8:fsdp+keep",
        "rep=2:ddp dp=4:fsdp",
        "dp=4:fsdp tp=2:tp",
        "dp=4:fsdp cp=2:ring+fsdp",
        "dp=8:ddp",
    ],
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
    "placement",
    [
        "dp=8:ddp",
        "dp=8:zero1",
        "dp=8:zero2",
        "dp=8:zero3",
        "rep=2:ddp dp=4:zero3",
        "dp=8:zero3+offload(optimizer)",
        "dp=8:zero3+offload(optimizer=0.5)",
        "dp=8:zero3+offload(optimizer)+offload(parameters)",
    ],
)
def test_deepspeed(
    tmp_path: pathlib.Path, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_module = pytest.importorskip("deepspeed.runtime.config")

    class Mesh:
        """As many data-parallel copies as the job has."""

        @staticmethod
        def get_data_parallel_world_size() -> int:
            return 8

    # Without a process group the configuration takes itself for that of one device.
    monkeypatch.setattr(config_module.dist, "get_rank", lambda: 0)
    file = exported(tmp_path, "deepspeed", placement) / "ds_config.json"
    try:
        config = config_module.DeepSpeedConfig(str(file), mpu=Mesh())
    except config_module.DeepSpeedConfigError as error:
        if "has been removed" not in str(error):
            raise
        pytest.skip(str(error))
    assert config.train_batch_size == 64
    assert config.gradient_accumulation_steps == 8
    stage = int(placement.split("zero")[1][0]) if "zero" in placement else 0
    assert config.zero_config.stage == stage
    offload = config.zero_config.offload_optimizer
    assert (offload is not None) is ("offload(optimizer" in placement)
    if "=0.5" in placement:
        assert offload.ratio == 0.5
    if placement.startswith("rep"):
        assert config.zero_config.mics_shard_size == 4


def test_trainer_takes_the_deepspeed_file(tmp_path: pathlib.Path) -> None:
    integration = pytest.importorskip("transformers.integrations.deepspeed")
    file = exported(tmp_path, "deepspeed", "dp=8:zero3") / "ds_config.json"
    config = integration.HfDeepSpeedConfig(json.loads(file.read_text()))
    assert config.is_zero3()


@pytest.mark.parametrize("dialect", ["accelerate", "deepspeed", "axolotl"])
def test_the_models_own_configuration(tmp_path: pathlib.Path, dialect: str) -> None:
    transformers = pytest.importorskip("transformers")
    folder = exported(tmp_path, dialect, "dp=8:fsdp")
    config = transformers.AutoConfig.from_pretrained(str(folder))
    assert (config.model_type, config.num_hidden_layers, config.vocab_size) == ("llama", 32, 128256)


def test_training_arguments_take_the_deepspeed_file(tmp_path: pathlib.Path) -> None:
    integration = pytest.importorskip("transformers.integrations.deepspeed")
    pytest.importorskip("accelerate")
    pytest.importorskip("deepspeed")
    transformers = pytest.importorskip("transformers")
    file = exported(tmp_path, "deepspeed", "dp=8:zero3") / "ds_config.json"
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        use_cpu=True,
        bf16=True,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=8,
        max_grad_norm=1.0,
    )
    config = integration.HfTrainerDeepSpeedConfig(str(file))
    # What the file and the arguments say apart ends in a ValueError; the batch of one device is
    # that of a launch without the other seven.
    config.config["train_batch_size"] //= 8
    config.trainer_config_process(arguments)
    assert config.mismatches == []
    assert config.is_zero3()


@pytest.mark.parametrize(
    "placement",
    [
        "dp=8:fsdp",
        "dp=4:fsdp tp=2:tp+sp",
        "dp=4:fsdp cp=2:ring+fsdp",
        "pp=2:1f1b dp=4:fsdp+keep-step",
        "pp=2:zb-v dp=4:fsdp+keep-step",
    ],
)
def test_torchtitan(tmp_path: pathlib.Path, placement: str) -> None:
    # Versions from the spring of 2026 on read no TOML.
    manager = pytest.importorskip("torchtitan.config")
    if not hasattr(getattr(manager, "ConfigManager", None), "_maybe_load_toml"):
        pytest.skip("this version of torchtitan reads no TOML")
    file = exported(tmp_path, "torchtitan", placement) / "train.toml"
    config = manager.ConfigManager().parse_args([f"--job.config_file={file}"])
    assert config.training.seq_len == 4096
    assert config.training.global_batch_size == 64


def test_nanotron(tmp_path: pathlib.Path) -> None:
    config_module = pytest.importorskip("nanotron.config", exc_type=ImportError)
    yaml = pytest.importorskip("yaml")
    file = exported(tmp_path, "nanotron", "dp=4:zero1 tp=2:tp+sp") / "config.yaml"
    said = yaml.safe_load(file.read_text())["parallelism"]
    parallelism = config_module.ParallelismArgs(**said)
    assert (parallelism.dp, parallelism.tp, parallelism.pp) == (4, 2, 1)
