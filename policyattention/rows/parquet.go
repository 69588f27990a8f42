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
)

// Write stores rows as one Parquet file, which appears complete or not at all. Its bytes depend on
// the rows alone. The columns are the fields of R, embedded ones included, by their tags; a NaN is
// null.
func Write[R any](path string, rows []R) error {
	var b bytes.Buffer
	err := encode(&b, rows)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = renameio.WriteFile(path, b.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("rows: writing %s: %w", path, err)
	}
	return nil
}

// rowGroup is how many rows share a group, which bounds what a reader holds at once.
const rowGroup = 1 << 18

func encode[R any](to io.Writer, rows []R) error {
	w := parquet.NewWriter(to, parquet.SchemaOf(*new(R)),
		parquet.CreatedBy("PolicyAttention", "1", ""), parquet.MaxRowsPerRowGroup(rowGroup))
	fields := leaves(reflect.TypeFor[R](), nil)
	batch := make([]parquet.Row, 0, 1024)
	for i := range rows {
		v := reflect.ValueOf(&rows[i]).Elem()
		var row parquet.Row
		for column, f := range fields {
			row = appendLeaf(row, v.FieldByIndex(f), column)
		}
		if batch = append(batch, row); len(batch) == cap(batch) || i == len(rows)-1 {
			if _, err := w.WriteRows(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return w.Close()
}

// leaves returns the indices of the fields of a struct, in the order of columns.
func leaves(t reflect.Type, at []int) (all [][]int) {
	for i := range t.NumField() {
		f, index := t.Field(i), append(at[:len(at):len(at)], i)
		if f.Anonymous {
			all = append(all, leaves(f.Type, index)...)
		} else {
			all = append(all, index)
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

// Read reads what Write has stored. It returns an error if the file has other columns than R, or is
// no Parquet file.
func Read[R any](path string) ([]R, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("rows: %w", err)
	}
	rows, err := decode[R](b)
	if err != nil {
		return nil, fmt.Errorf("rows: %s: %w", path, err)
	}
	return rows, nil
}

// errColumns is wrapped by the error of a file with other columns.
var errColumns = errors.New("its columns are")

// decode reads a file. A broken one can make the library panic, which is an error here.
func decode[R any](b []byte) (rows []R, err error) {
	defer func() {
		if r := recover(); r != nil {
			rows, err = nil, fmt.Errorf("no Parquet file of these columns: %v", r)
		}
	}()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	if got, want := f.Schema(), parquet.SchemaOf(*new(R)); !parquet.EqualNodes(got, want) {
		return nil, fmt.Errorf("%w %v, want %v", errColumns, got, want)
	}
	if f.NumRows() > int64(len(b))*64 {
		return nil, fmt.Errorf("it claims %d rows in %d bytes", f.NumRows(), len(b))
	}
	rows = make([]R, f.NumRows())
	fields, first := leaves(reflect.TypeFor[R](), nil), 0
	for _, group := range f.RowGroups() {
		n := int(group.NumRows())
		for column, field := range fields {
			if err := readColumn(group.ColumnChunks()[column], rows[first:first+n], field); err != nil {
				return nil, fmt.Errorf("column %s: %w", f.Schema().Columns()[column], err)
			}
		}
		first += n
	}
	return rows, nil
}

// readColumn fills a field of some rows.
func readColumn[R any](chunk parquet.ColumnChunk, rows []R, field []int) error {
	pages := chunk.Pages()
	defer pages.Close()
	values, at := make([]parquet.Value, 1024), -1
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for reader := page.Values(); ; {
			n, err := reader.ReadValues(values)
			for _, v := range values[:n] {
				if v.RepetitionLevel() == 0 {
					at++
				}
				setLeaf(reflect.ValueOf(&rows[at]).Elem().FieldByIndex(field), v)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		parquet.Release(page)
	}
	if at != len(rows)-1 {
		return fmt.Errorf("%d values, want %d", at+1, len(rows))
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
