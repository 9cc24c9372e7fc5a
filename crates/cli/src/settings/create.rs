//! What `config create` was told, as the draft of a sync.

use std::path::Path;

use tidelake_model::{
    Compression, ErrorAction, FenceMode, FenceSettings, MetadataSettings, NullCursor,
    PublishMethod, PublishSettings, Result, SourceSettings, SyncConfig, TargetLocation,
    TargetSettings,
};
use tidelake_sync::{IncrementalRequest, SyncDraft};
use tidelake_watermark::Decimal;

use super::{
    column_options, comma_list, configuration, names, not_available, quantity, table_config,
};
use crate::args::{
    CompressionName, CreateArgs, ErrorActionName, FenceName, FormatName, NullCursorName,
    PublishMethodName,
};

/// Least bytes in memory with which a run can work.
const LEAST_MEMORY: u64 = 16 << 20;

/// A sync to be made.
pub(crate) struct CreateSettings {
    pub(crate) draft: SyncDraft,
}

impl CreateSettings {
    /// Resolves and checks the options; nothing outside the command line is
    /// looked at.
    pub(crate) fn resolve(env: &str, args: CreateArgs) -> Result<Self> {
        refuse_what_is_not_built(&args)?;
        let sync_id = args.sync.sync_id.clone().unwrap_or_default();
        if args.sync.sync_id.is_some() {
            names::check_identifier("the sync id", "--sync-id", &sync_id)?;
        }
        let incremental = args.cursor.incremental_table.iter();
        let incremental: Vec<_> =
            incremental.map(|text| IncrementalRequest::parse(text)).collect::<Result<_>>()?;
        let config = SyncConfig {
            sync_id,
            env: env.to_owned(),
            source: source(&args)?,
            incremental: vec![],
            safety_lag: quantity::seconds(
                "--incremental-safety-lag",
                &args.cursor.incremental_safety_lag,
            )?,
            lookback: args.cursor.lookback.as_deref().map(lookback).transpose()?,
            safety_gap: args.cursor.safety_gap.as_deref().map(safety_gap).transpose()?,
            null_cursor: match args.cursor.null_cursor {
                NullCursorName::First => NullCursor::First,
                NullCursorName::Include => NullCursor::Include,
                NullCursorName::Exclude => NullCursor::Exclude,
                NullCursorName::Fail => NullCursor::Fail,
            },
            cursor_zone: args.cursor.cursor_zone.clone(),
            fence: fence(&args)?,
            policies: column_options::policies(&args.columns),
            columns: vec![],
            keys: vec![],
            casts: vec![],
            schema_drift: column_options::schema_drift(&args.columns),
            target: target(&args)?,
            parallel: args.speed.parallel,
            n_jobs: n_jobs(&args)?,
            large_table_threshold: args.speed.large_table_threshold,
            read_settings: args
                .speed
                .fastbcp_table_config
                .as_deref()
                .map(table_config::parse)
                .transpose()?
                .unwrap_or_default(),
            compression: match args.target.compression_type {
                CompressionName::Zstd => Compression::Zstd,
                CompressionName::Snappy => Compression::Snappy,
                CompressionName::Gzip => Compression::Gzip,
                CompressionName::Lz4 => Compression::Lz4,
                CompressionName::None => Compression::None,
            },
            memory_limit: memory_limit(&args)?,
            publish: publish(&args)?,
            metadata: metadata(&args)?,
            error_action: match args.sync.error_action {
                ErrorActionName::Fail => ErrorAction::Fail,
                ErrorActionName::Continue => ErrorAction::Continue,
            },
            keep_generations: args.target.keep_generations,
        };
        let columns = column_options::requests(&args.columns)?;
        Ok(Self { draft: SyncDraft { config, incremental, columns, dry_run: args.sync.dry_run } })
    }
}

/// Options whose part of the program does not exist yet: silence would be a lie.
fn refuse_what_is_not_built(args: &CreateArgs) -> Result<()> {
    let refused = [
        (args.target.format == FormatName::Delta, "--format delta", "use --format parquet"),
        (args.target.format == FormatName::Iceberg, "--format iceberg", "use --format parquet"),
        (args.publish.no_views, "--no-views", "leave it out"),
    ];
    match refused.into_iter().find(|(given, ..)| *given) {
        Some((_, option, hint)) => Err(not_available(option).with_hint(hint)),
        None => Ok(()),
    }
}

fn source(args: &CreateArgs) -> Result<SourceSettings> {
    let source = &args.source;
    if let (Some(least), Some(most)) = (source.min_rows, source.max_rows)
        && least > most
    {
        return Err(configuration(format!("--min-rows {least} is more than --max-rows {most}"))
            .with_hint("exchange the two, or leave one of them out"));
    }
    Ok(SourceSettings {
        credential_id: source.source_db_auth_id.clone(),
        connector_type: String::new(),
        database: source.source_db_name.clone(),
        schemas: comma_list("--source-schema-name", source.source_schema_name.as_deref())?,
        include: comma_list("--include", source.include.as_deref())?,
        exclude: comma_list("--exclude", source.exclude.as_deref())?,
        min_rows: source.min_rows,
        max_rows: source.max_rows,
    })
}

fn lookback(text: &str) -> Result<String> {
    // An amount of a number cursor is kept as it is; a time becomes seconds.
    if Decimal::parse(text).is_some() && !text.starts_with('-') {
        return Ok(text.to_owned());
    }
    quantity::seconds("--lookback", text).map(|seconds| seconds.to_string())
}

fn safety_gap(text: &str) -> Result<String> {
    if Decimal::parse(text).is_some() && !text.starts_with('-') {
        return Ok(text.to_owned());
    }
    Err(configuration(format!("--safety-gap {text:?} is not a number from 0"))
        .with_hint("it is an amount of the cursor's own numbers, such as 1000"))
}

fn fence(args: &CreateArgs) -> Result<FenceSettings> {
    Ok(FenceSettings {
        mode: match args.cursor.inflight_fence {
            FenceName::Auto => FenceMode::Auto,
            FenceName::Require => FenceMode::Require,
            FenceName::Off => FenceMode::Off,
        },
        wait: quantity::seconds("--inflight-wait", &args.cursor.inflight_wait)?,
        ignore_users: comma_list("--inflight-ignore", args.cursor.inflight_ignore.as_deref())?,
        primary_credential_id: args.cursor.fence_auth_id.clone(),
    })
}

fn target(args: &CreateArgs) -> Result<TargetSettings> {
    let target = &args.target;
    let location = match (&target.output_dir, &target.target_storage_id) {
        (Some(folder), None) => TargetLocation::Folder(absolute(folder)?),
        (None, Some(id)) => TargetLocation::Credential(id.clone()),
        (Some(_), Some(_)) => {
            return Err(configuration("--output-dir and --target-storage-id name two targets")
                .with_hint("keep one of them"));
        }
        (None, None) => {
            return Err(configuration("no target is named").with_hint(
                "name a local folder with --output-dir, or a storage's credential with \
                 --target-storage-id",
            ));
        }
    };
    let sub_path = target.sub_path.as_deref().map(names::sub_path).transpose()?.flatten();
    Ok(TargetSettings { location, sub_path })
}

/// The folder from the root, as it is stored: a later run may start elsewhere.
fn absolute(folder: &Path) -> Result<String> {
    let text = folder.to_str().filter(|text| !text.is_empty()).ok_or_else(|| {
        configuration("--output-dir is empty or not valid Unicode").with_hint("name a folder")
    })?;
    if text.contains("://") {
        return Err(configuration(format!("--output-dir {text:?} is not a local folder"))
            .with_hint("for an object store, name its credential with --target-storage-id"));
    }
    // A shell that meets it behind a `=` leaves it as it is.
    if text == "~" || text.starts_with("~/") {
        return Err(configuration(format!(
            "--output-dir {text:?} is no folder: ~ stands for itself"
        ))
        .with_hint("write a space instead of '=', as in --output-dir ~/lake, or the whole path"));
    }
    let absolute = std::path::absolute(folder).map_err(|error| {
        configuration(format!("--output-dir {text:?} is not a folder")).with_source(error)
    })?;
    Ok(absolute.to_string_lossy().trim_end_matches('/').to_owned())
}

fn n_jobs(args: &CreateArgs) -> Result<u32> {
    match args.speed.n_jobs {
        0 => Err(configuration("--n-jobs is 0").with_hint("at least one table is read at once")),
        jobs => Ok(jobs),
    }
}

fn memory_limit(args: &CreateArgs) -> Result<u64> {
    let limit = quantity::bytes("--memory-limit", &args.speed.memory_limit)?;
    if limit < LEAST_MEMORY {
        let message = format!("--memory-limit {:?} is too little", args.speed.memory_limit);
        return Err(configuration(message).with_hint("at least 16MiB are needed"));
    }
    Ok(limit)
}

fn publish(args: &CreateArgs) -> Result<Option<PublishSettings>> {
    let publish = &args.publish;
    let Some(credential_id) = publish.publish_target.clone() else {
        let orphans = [
            (publish.publish_method.is_some(), "--publish-method"),
            (publish.publish_database_name.is_some(), "--publish-database-name"),
            (publish.publish_schema_pattern.is_some(), "--publish-schema-pattern"),
            (publish.publish_table_pattern.is_some(), "--publish-table-pattern"),
            (publish.pk_constraints, "--pk-constraints"),
        ];
        return match orphans.into_iter().find(|(given, _)| *given) {
            Some((_, option)) => Err(configuration(format!("{option} needs a publish target"))
                .with_hint("name its credential with --publish-target")),
            None => Ok(None),
        };
    };
    let pattern = |option, text: &Option<String>, default, required| {
        names::publish_pattern(option, text.as_deref().unwrap_or(default), required)
    };
    Ok(Some(PublishSettings {
        credential_id,
        connector_type: String::new(),
        method: match publish.publish_method {
            Some(PublishMethodName::Internal) => PublishMethod::Internal,
            Some(PublishMethodName::External) | None => PublishMethod::External,
        },
        database: publish.publish_database_name.clone(),
        schema_pattern: pattern(
            "--publish-schema-pattern",
            &publish.publish_schema_pattern,
            "{schema}",
            None,
        )?,
        table_pattern: pattern(
            "--publish-table-pattern",
            &publish.publish_table_pattern,
            "{table}",
            Some("{table}"),
        )?,
        primary_keys: publish.pk_constraints,
    }))
}

fn metadata(args: &CreateArgs) -> Result<Option<MetadataSettings>> {
    let target = &args.target;
    if target.manifest_name.is_some() && !target.generate_metadata {
        return Err(configuration("--manifest-name has no meaning without --generate-metadata")
            .with_hint("add --generate-metadata, or leave out --manifest-name"));
    }
    let settings = MetadataSettings { manifest_name: target.manifest_name.clone() };
    Ok(target.generate_metadata.then_some(settings))
}
