//! Credentials as users write them, and mistakes in them.

use std::io::Write;

use serde_json::json;

use super::*;

fn catalogue() -> Arc<Catalogue> {
    let schema = json!({
        "properties": {
            "username": {"type": "string"},
            "password": {"type": ["string", "null"]},
            "port": {"type": "integer"},
            "trust": {"type": ["boolean", "null"]},
            "mode": {"anyOf": [{"$ref": "#/$defs/Mode"}, {"type": "null"}]},
        },
        "$defs": {"Mode": {"oneOf": [{"type": "string", "const": "tls"}]}},
        "required": ["username"],
    });
    Arc::new(Catalogue {
        state_keys: vec!["schema"],
        systems: vec![
            KnownSystem {
                name: "shopbase",
                auth_modes: &["classic"],
                schema: Some(schema.clone()),
            },
            KnownSystem { name: "bucket", auth_modes: &["keys", "role"], schema: Some(schema) },
            KnownSystem {
                name: "lake",
                auth_modes: &["key", "token"],
                schema: Some(json!({
                    "properties": {"place": {}, "key": {}, "token": {}},
                    "modes": {"key": ["key"], "token": ["token"]},
                })),
            },
            KnownSystem { name: "oldbase", auth_modes: &["classic"], schema: None },
        ],
    })
}

fn load(text: &str) -> Result<CredentialsFile> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    CredentialsFile::load(Some(file.path().into()), catalogue())
}

fn credential(entry: Value) -> Result<Credential> {
    load(&json!({ "shop": entry }).to_string())?.credential("shop")
}

fn refused(entry: Value) -> String {
    let Err(error) = credential(entry) else { panic!("it was accepted") };
    format!("{error} / {}", error.hint().unwrap_or("no hint"))
}

#[test]
fn a_credential_is_read() {
    let read = credential(json!({
        "ds_type": "shopbase", "auth_mode": "classic",
        "info": {"username": "ann", "port": "5433", "trust": "true"},
    }))
    .unwrap();
    assert_eq!(read.kind, "shopbase");
    assert_eq!(read.info.text("username"), Some("ann"));
    #[derive(serde::Deserialize)]
    struct Numbers {
        port: u16,
        trust: bool,
    }
    let numbers: Numbers = read.info.parse().unwrap();
    assert_eq!((numbers.port, numbers.trust), (5433, true));
}

#[test]
fn each_way_to_log_in_has_keys_of_its_own() {
    let with =
        |mode: &str, info: Value| json!({"ds_type": "lake", "auth_mode": mode, "info": info});
    assert!(credential(with("key", json!({"place": "x", "key": "k"}))).is_ok());
    assert!(credential(with("token", json!({"token": "t", "key": null}))).is_ok());
    let text = refused(with("key", json!({"place": "x"})));
    assert!(text.contains("shop.info.key is missing / auth_mode key takes: key"), "{text}");
    let text = refused(with("key", json!({"key": "hunter2", "token": "hunter3"})));
    let told = "shop.info.token belongs to auth_mode \"token\", not \"key\"";
    assert!(text.contains(told) && !text.contains("hunter"), "{text}");
}

#[test]
fn the_only_way_to_log_in_need_not_be_named() {
    assert!(credential(json!({"ds_type": "shopbase", "info": {"username": "a"}})).is_ok());
    let text = refused(json!({"ds_type": "bucket", "info": {"username": "a"}}));
    assert!(text.contains("shop.auth_mode is missing / bucket takes: keys, role"), "{text}");
}

#[test]
fn unknown_words_are_refused_with_the_nearest() {
    let text = refused(json!({"ds_type": "shopbase", "auth_mod": "x", "info": {}}));
    assert!(text.contains("did you mean \"auth_mode\""), "{text}");
    let text = refused(json!({"ds_type": "shopbase", "info": {"usrname": "hunter2"}}));
    assert!(text.contains("shop.info has an unknown key \"usrname\""), "{text}");
    assert!(text.contains("did you mean \"username\"") && !text.contains("hunter2"), "{text}");
    let text = refused(json!({"ds_type": "shopbas", "info": {}}));
    assert!(text.contains("did you mean \"shopbase\""), "{text}");
    let text = refused(json!({"ds_type": "oldbase", "info": {}}));
    assert!(text.contains("not available yet / available are: shopbase, bucket, lake"), "{text}");
    let text = refused(json!({"ds_type": "shopbase", "auth_mode": "magic", "info": {}}));
    assert!(text.contains("shopbase takes: classic"), "{text}");
}

#[test]
fn missing_and_misshapen_parts_are_named() {
    for (entry, part) in [
        (json!("text"), "\"shop\" is no JSON object"),
        (json!({"info": {}}), "shop.ds_type is missing"),
        (json!({"ds_type": 5, "info": {}}), "shop.ds_type is no text"),
        (json!({"ds_type": "shopbase"}), "shop.info is missing"),
        (json!({"ds_type": "shopbase", "info": []}), "shop.info is no JSON object"),
        (json!({"ds_type": "shopbase", "info": {}}), "shop.info.username is missing"),
    ] {
        let text = refused(entry);
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_value_of_another_type_is_named_by_its_field() {
    for (info, part) in [
        (json!({"username": 5}), "shop.info.username is a whole number, where a text is needed"),
        (json!({"username": "a", "password": ["hunter2"]}), "shop.info.password is a list"),
        (json!({"username": "a", "port": "hunter2"}), "shop.info.port is a text, where a whole"),
        (json!({"username": "a", "port": 54.5}), "shop.info.port is a fraction, where a whole"),
        (json!({"username": "a", "trust": "maybe"}), "shop.info.trust is a text, where true or"),
        (json!({"username": {"a": "hunter2"}}), "shop.info.username is an object"),
        (json!({"username": "a", "mode": 5}), "shop.info.mode is a whole number, where a text"),
    ] {
        let text = refused(json!({"ds_type": "shopbase", "info": info}));
        assert!(text.contains(part) && !text.contains("hunter2"), "{text}");
    }
    let nulls = json!({"username": "a", "port": null, "password": null, "trust": null});
    assert!(credential(json!({"ds_type": "shopbase", "info": nulls})).is_ok());
}

#[test]
fn broken_json_names_line_and_column_but_no_value() {
    let text = "{\n \"shop\": {\"password\": \"hunter2\" \"x\"}\n}";
    let error = load(text).err().unwrap();
    assert!(error.message().contains("line 2 column"), "{error}");
    assert!(!error.chain().contains("hunter2"), "{error:?}");
    assert!(load("[]").is_err());
    assert!(load("\u{feff}{}").is_ok());
}

#[test]
fn a_key_that_stands_twice_is_named_with_its_place() {
    for (text, part) in [
        ("{\"shop\": {}, \"shop\": {}}", "\"shop\" stands again at line 1 column"),
        (
            "{\"shop\": {\"info\": {\"password\": \"hunter2\",\n \"password\": \"hunter3\"}}}",
            "\"password\" stands again at line 2 column",
        ),
    ] {
        let error = load(text).err().unwrap();
        assert!(error.message().contains(part), "{error}");
        assert!(!error.chain().contains("hunter"), "{error:?}");
    }
    let same = "{\"a\": {\"x\": [1, -2, 0.5, \"é\", null, true]}, \"b\": {\"x\": {}}}";
    let file = load(same).unwrap();
    assert_eq!(Value::from(file.entries), serde_json::from_str::<Value>(same).unwrap());
}

#[test]
fn an_unknown_id_names_those_that_exist() {
    let file = load("{\"shop\": {}, \"lake\": {}}").unwrap();
    let error = file.credential("shp").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.hint(), Some("did you mean \"shop\"? there are: shop, lake"));
}

#[test]
fn without_a_file_the_option_is_named() {
    let file = CredentialsFile::load(None, catalogue()).unwrap();
    let error = file.credential("shop").err().unwrap();
    assert!(error.hint().unwrap().contains("--auth-file"));
}
