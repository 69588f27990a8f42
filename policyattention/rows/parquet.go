package rows

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"

	"github.com/google/renameio/v2"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Write stores rows, a slice of structs, as one Parquet file, which appears complete or not at all. Its bytes depend on
// the rows alone. The columns are the fields of a row, embedded ones included, by their tags; a NaN is null.
func Write(path string, rows any) error {
	var b bytes.Buffer
	err := encode(&b, reflect.ValueOf(rows))
	if err == nil {
		err = WriteFile(path, b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("rows: writing %s: %w", path, err)
	}
	return nil
}

// WriteFile stores a file, which appears complete or not at all, in a folder that is made if it does not exist.
func WriteFile(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(path, b, 0o644)
}

// rowGroup is how many rows share a group, which bounds what a reader holds at once: a group has its own dictionaries.
const rowGroup = 1 << 21

// page is the most bytes of a page: numbers of a column that repeat are found within one.
const page = 8 << 20

func schema(row reflect.Type) *parquet.Schema { return parquet.SchemaOf(reflect.Zero(row).Interface()) }

func encode(to io.Writer, rows reflect.Value) error {
	w := parquet.NewWriter(to, schema(rows.Type().Elem()),
		parquet.CreatedBy("PolicyAttention", "1", ""),
		parquet.MaxRowsPerRowGroup(rowGroup), parquet.PageBufferSize(page),
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedBestCompression}))
	fields := leaves(rows.Type().Elem())
	batch := make([]parquet.Row, 0, 1024)
	for i := range rows.Len() {
		var row parquet.Row
		for column, f := range fields {
			row = appendLeaf(row, rows.Index(i).FieldByIndex(f), column)
		}
		if batch = append(batch, row); len(batch) == cap(batch) || i == rows.Len()-1 {
			if _, err := w.WriteRows(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return w.Close()
}

// leaves returns the indices of the fields of a struct, in the order of columns.
func leaves(t reflect.Type) (all [][]int) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous {
			all = append(all, f.Index)
		}
	}
	return all
}

// appendLeaf appends the values of a field: floats are optional, lists repeated.
func appendLeaf(row parquet.Row, v reflect.Value, column int) parquet.Row {
	switch v.Kind() {
	case reflect.Float64:
		if math.IsNaN(v.Float()) {
			return append(row, parquet.NullValue().Level(0, 0, column))
		}
		return append(row, parquet.DoubleValue(v.Float()).Level(0, 1, column))
	case reflect.Slice:
		if v.Len() == 0 {
			return append(row, parquet.NullValue().Level(0, 0, column))
		}
		for i := range v.Len() {
			row = append(row, parquet.ValueOf(v.Index(i).Interface()).Level(min(i, 1), 1, column))
		}
		return row
	}
	return append(row, parquet.ValueOf(v.Interface()).Level(0, 0, column))
}

// Read reads what Write has stored. It returns an error if the file has other columns than R, or is no Parquet file.
func Read[R any](path string) (rows []R, err error) {
	err = read(path, reflect.ValueOf(&rows).Elem())
	return rows, err
}

// read sets rows, a slice, to those of a file.
func read(path string, rows reflect.Value) error {
	return load(path, func(b []byte) error { return decode(b, rows) })
}

// load has the bytes of a file decoded.
func load(path string, decode func(b []byte) error) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("rows: %w", err)
	}
	if err := decode(b); err != nil {
		return fmt.Errorf("rows: %s: %w", path, err)
	}
	return nil
}

// errColumns is wrapped by the error of a file with other columns.
var errColumns = errors.New("its columns are")

// decode reads a file into rows of the same columns.
func decode(b []byte, rows reflect.Value) error {
	row := rows.Type().Elem()
	want, fields := schema(row), leaves(row)
	var all reflect.Value
	return scan(b, func(f *parquet.File) error {
		if got := f.Schema(); !parquet.EqualNodes(got, want) {
			return fmt.Errorf("%w %v, want %v", errColumns, got, want)
		}
		n := int(f.NumRows())
		if n > len(b)*64 {
			return fmt.Errorf("it claims %d rows in %d bytes", n, len(b))
		}
		all = reflect.MakeSlice(rows.Type(), n, n)
		rows.Set(all)
		return nil
	}, func(column, row int, v parquet.Value) { setLeaf(all.Index(row).FieldByIndex(fields[column]), v) })
}

// Scan calls value for every value of a Parquet file, column by column, with the column's name, and returns the number
// of rows. Where entries are lists each of theirs is a value. It returns an error for what is no Parquet file.
func Scan(path string, value func(column string, v parquet.Value)) (n int, err error) {
	var columns [][]string
	begin := func(f *parquet.File) error {
		columns, n = f.Schema().Columns(), int(f.NumRows())
		return nil
	}
	err = load(path, func(b []byte) error {
		return scan(b, begin, func(column, _ int, v parquet.Value) { value(columns[column][0], v) })
	})
	return n, err
}

// scan shows begin a file, and value all its values. A broken file can make the library panic, which is an error here.
func scan(b []byte, begin func(*parquet.File) error, value func(column, row int, v parquet.Value)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("no Parquet file of these columns: %v", r)
		}
	}()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err == nil {
		err = begin(f)
	}
	if err != nil {
		return err
	}
	first := 0
	for _, group := range f.RowGroups() {
		n := int(group.NumRows())
		for column, chunk := range group.ColumnChunks() {
			if err := scanColumn(chunk, n, func(row int, v parquet.Value) { value(column, first+row, v) }); err != nil {
				return fmt.Errorf("column %s: %w", f.Schema().Columns()[column], err)
			}
		}
		first += n
	}
	return nil
}

// scanColumn shows the values of some rows.
func scanColumn(chunk parquet.ColumnChunk, rows int, value func(row int, v parquet.Value)) error {
	reader := parquet.NewColumnChunkValueReader(chunk)
	defer reader.Close()
	values, at := make([]parquet.Value, 1024), -1
	for {
		n, err := reader.ReadValues(values)
		for _, v := range values[:n] {
			if v.RepetitionLevel() == 0 {
				at++
			}
			value(at, v)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if at != rows-1 {
		return fmt.Errorf("%d values, want %d", at+1, rows)
	}
	return nil
}

// setLeaf is the inverse of appendLeaf for one value.
func setLeaf(to reflect.Value, v parquet.Value) {
	switch to.Kind() {
	case reflect.Float64:
		if v.IsNull() {
			to.SetFloat(math.NaN())
		} else {
			to.SetFloat(v.Double())
		}
	case reflect.Slice:
		if v.IsNull() {
			return
		}
		element := reflect.New(to.Type().Elem()).Elem()
		setLeaf(element, v)
		to.Set(reflect.Append(to, element))
	case reflect.Int32, reflect.Int64:
		to.SetInt(v.Int64())
	case reflect.Bool:
		to.SetBool(v.Boolean())
	case reflect.String:
		to.SetString(string(v.ByteArray()))
	default:
		panic(fmt.Sprintf("a field of type %s", to.Type()))
	}
}
