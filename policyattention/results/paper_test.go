package results

import "testing"

// A line that is malformed or stands there twice is an error.
func TestReadNumbers(t *testing.T) {
	const head, line = "block,quantity,states,horizon,value,lo,hi,where\n", "oracle,exact-pmd,8,20,.0148,,,Table 3\n"
	if numbers, err := readNumbers(head + "# comment\n" + line); err != nil || numbers[Key{"oracle", "exact-pmd", 8, 20}].Value != .0148 {
		t.Errorf("%v, %v", numbers, err)
	}
	for name, text := range map[string]string{
		"twice": line + line, "states": "oracle,exact-pmd,x,20,.0148,,,Table 3\n", "value": "oracle,exact-pmd,8,20,,,,Table 3\n",
		"interval": "oracle,exact-pmd,8,20,.0148,.01,x,Table 3\n", "columns": "oracle,exact-pmd,8,20,.0148\n",
	} {
		if _, err := readNumbers(head + text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
