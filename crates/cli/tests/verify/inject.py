"""Changes rows of a lake behind tidelake's back: the Parquet file and its manifest,
so that nothing but a comparison of values can find out.

    inject.py TABLE_FOLDER EDITS

EDITS is a list of {"id": 7, "do": "cell", "column": "note", "value": "x"},
{"id": 7, "do": "gone"} or {"id": 7, "do": "twice"}; one live file holds each id.
Prints for each edit the file that was changed."""

import hashlib
import json
import pathlib
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def changed(table, edit):
    place = pc.index(table["id"], edit["id"]).as_py()
    if edit["do"] == "gone":
        return pa.concat_tables([table.slice(0, place), table.slice(place + 1)])
    if edit["do"] == "twice":
        return pa.concat_tables([table, table.slice(place, 1)])
    name = edit["column"]
    at = table.schema.get_field_index(name)
    kind = table.schema.field(name).type
    column = table[name]
    cell = pa.chunked_array([pa.array([edit["value"]], kind)])
    parts = column.slice(0, place).chunks + cell.chunks + column.slice(place + 1).chunks
    return table.set_column(at, table.schema.field(name), pa.chunked_array(parts, kind))


def main():
    folder, edits = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
    latest = json.loads((folder / "_tidelake/latest.json").read_text())
    for edit in edits:
        done = False
        for live in latest["manifests"]:
            path = folder / live["key"]
            manifest = json.loads(path.read_text())
            for file in manifest["files"]:
                data = folder / file["key"]
                ids = pq.read_table(data, columns=["id"])["id"]
                if pc.index(ids, edit["id"]).as_py() < 0:
                    continue
                table = changed(pq.read_table(data), edit)
                pq.write_table(table, data, compression="zstd")
                content = data.read_bytes()
                file["rows"], file["bytes"] = table.num_rows, len(content)
                file["sha256"] = hashlib.sha256(content).hexdigest()
                path.write_text(json.dumps(manifest))
                print(data.name)
                done = True
        assert done, f"no file holds {edit['id']}"


main()
