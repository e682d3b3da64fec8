// Runs pion's Google congestion control with feedback from another program. Packets sent and reports are read from
// standard input. After each report, the target rate is written to standard output. The program is a Go test, because
// pion uses the clock of its process, and only tests can set this clock (testing/synctest). Only one processor is used,
// so that goroutines run in a fixed order.
//
//	go test -c -o pion && ./pion -test.run Targets < events
//
//	start INITIAL MIN MAX      bit/s
//	sent NS NUMBER BYTES       time since the start
//	report NS NUMBER ARRIVAL...  statuses of packets from NUMBER on: arrival in µs of the receiver's clock, or "-" if the packet was lost
//
// Each line of the output is "target BPS", with the target rate in bit/s.
package gcc

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/gcc"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const (
	extension   = 1
	transportCC = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
	// Unit of the reference time in transport-wide feedback: 64 ms, in µs.
	referenceUs = 64_000
)

type sender struct {
	t         *testing.T
	began     time.Time
	estimator *gcc.SendSideBWE
	writer    interceptor.RTPWriter
}

func TestTargets(t *testing.T) {
	runtime.GOMAXPROCS(1)
	synctest.Test(t, func(t *testing.T) {
		lines := bufio.NewScanner(os.Stdin)
		lines.Buffer(make([]byte, 1<<20), 1<<20)
		var s *sender
		for lines.Scan() {
			words := strings.Fields(lines.Text())
			switch {
			case len(words) == 4 && words[0] == "start":
				s = newSender(t, number(t, words[1]), number(t, words[2]), number(t, words[3]))
			case len(words) == 4 && words[0] == "sent":
				s.sent(number(t, words[1]), number(t, words[2]), number(t, words[3]))
			case len(words) > 3 && words[0] == "report":
				s.report(number(t, words[1]), number(t, words[2]), words[3:])
			default:
				t.Fatalf("no event: %q", lines.Text())
			}
		}
		if s != nil {
			_ = s.estimator.Close()
		}
	})
}

func number(t *testing.T, word string) int64 {
	value, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func newSender(t *testing.T, initial, least, most int64) *sender {
	estimator, err := gcc.NewSendSideBWE(
		gcc.SendSideBWEInitialBitrate(int(initial)),
		gcc.SendSideBWEMinBitrate(int(least)),
		gcc.SendSideBWEMaxBitrate(int(most)),
		gcc.SendSideBWEPacer(gcc.NewNoOpPacer()),
	)
	if err != nil {
		t.Fatal(err)
	}
	info := &interceptor.StreamInfo{
		SSRC:                1,
		RTPHeaderExtensions: []interceptor.RTPHeaderExtension{{URI: transportCC, ID: extension}},
	}
	written := func(_ *rtp.Header, payload []byte, _ interceptor.Attributes) (int, error) { return len(payload), nil }
	writer := estimator.AddStream(info, interceptor.RTPWriterFunc(written))
	return &sender{t: t, began: time.Now(), estimator: estimator, writer: writer}
}

// until advances the simulated clock to the time ns after the start. Pion's goroutines take no simulated time, because
// the clock stops until all of them wait.
func (s *sender) until(ns int64) {
	time.Sleep(time.Until(s.began.Add(time.Duration(ns))))
	synctest.Wait()
}

func (s *sender) sent(ns, sequence, size int64) {
	s.until(ns)
	mark, err := rtp.TransportCCExtension{TransportSequence: uint16(sequence)}.Marshal()
	if err != nil {
		s.t.Fatal(err)
	}
	header := &rtp.Header{Version: 2, SSRC: 1, SequenceNumber: uint16(sequence)}
	if err := header.SetExtension(extension, mark); err != nil {
		s.t.Fatal(err)
	}
	payload := make([]byte, int(size)-header.MarshalSize())
	if _, err := s.writer.Write(header, payload, nil); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sender) report(ns, first int64, arrivals []string) {
	s.until(ns)
	feedback := &rtcp.TransportLayerCC{BaseSequenceNumber: uint16(first), PacketStatusCount: uint16(len(arrivals))}
	symbols := &rtcp.StatusVectorChunk{}
	last := int64(-1)
	for _, word := range arrivals {
		symbol := uint16(rtcp.TypeTCCPacketNotReceived)
		if word != "-" {
			symbol = rtcp.TypeTCCPacketReceivedLargeDelta
			arrival := number(s.t, word)
			if last < 0 {
				last = arrival / referenceUs * referenceUs
				feedback.ReferenceTime = uint32(arrival / referenceUs)
			}
			delta := &rtcp.RecvDelta{Type: rtcp.TypeTCCPacketReceivedLargeDelta, Delta: arrival - last}
			feedback.RecvDeltas = append(feedback.RecvDeltas, delta)
			last = arrival
		}
		symbols.SymbolList = append(symbols.SymbolList, symbol)
	}
	feedback.PacketChunks = []rtcp.PacketStatusChunk{symbols}
	if err := s.estimator.WriteRTCP([]rtcp.Packet{feedback}, nil); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
	fmt.Printf("target %d\n", s.estimator.GetTargetBitrate())
}
