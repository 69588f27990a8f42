package decoder

import (
	"encoding/json"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/safetensors"
	"icrl/policyattention/decoder/network"
)

// SafeTensors returns the weights under the names of the legend, the readouts
// as "readout.policy.weight", "readout.policy.bias" and so on, the gains of
// layer norms, and a carrier's c and J. The certificate is in the metadata as
// JSON.
func (d *Decoder) SafeTensors() (*safetensors.File, error) {
	certificate, err := json.Marshal(d.Certificate)
	if err != nil {
		return nil, err
	}
	f := &safetensors.File{Metadata: map[string]string{"certificate": string(certificate)}}
	vector := func(name string, x []float64) {
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: name, Shape: []int{len(x)}, Data: x})
	}
	matrix := func(name string, m *mat.Dense) {
		rows, cols := m.Dims()
		var data []float64
		for i := range rows {
			data = append(data, m.RawRowView(i)...)
		}
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: name, Shape: []int{rows, cols}, Data: data})
	}
	for _, w := range d.Network.Matrices() {
		matrix(w.Name, w.Matrix)
	}
	for _, r := range []*network.Readout{d.Policy, d.Value} {
		matrix("readout."+r.Name+".weight", r.W)
		vector("readout."+r.Name+".bias", r.Bias)
	}
	if d.Carrier != nil {
		matrix("carrier.j", d.Carrier.J)
		vector("carrier.c", d.Carrier.U)
		vector("norm.gain", d.Network.Norm.Gain) // one for all norms
	}
	return f, nil
}
