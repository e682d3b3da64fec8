// A sender and a receiver of RTP over UDP that use the GCC of pion/interceptor: transport-wide congestion control
// feedback, the delay-based and loss-based estimator, and pion's own pacer. The media are like those of an encoder that
// follows its target rate immediately. A frame is sent every 1/30 s, in IP packets of at most 1200 bytes.
package main

import (
	"flag"
	"fmt"
	"log"
	"math/rand"
	"net"
	"os"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/interceptor/pkg/gcc"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const (
	uri     = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
	extID   = 5
	ssrc    = 0x45515031
	pt      = 96
	largest = 1200 - 20 - 8 - 12 - 8 // RTP payload of an IP packet of 1200 bytes
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func info() *interceptor.StreamInfo {
	return &interceptor.StreamInfo{SSRC: ssrc, PayloadType: pt, ClockRate: 90000,
		RTPHeaderExtensions: []interceptor.RTPHeaderExtension{{URI: uri, ID: extID}},
		RTCPFeedback:        []interceptor.RTCPFeedback{{Type: "transport-cc"}}}
}

func receive(listen string, every time.Duration) {
	addr, err := net.ResolveUDPAddr("udp4", listen)
	must(err)
	conn, err := net.ListenUDP("udp4", addr)
	must(err)
	f, err := twcc.NewSenderInterceptor(twcc.SendInterval(every))
	must(err)
	r := &interceptor.Registry{}
	r.Add(f)
	chain, err := r.Build("receiver")
	must(err)
	var peer *net.UDPAddr
	var incoming []byte
	chain.BindRTCPWriter(interceptor.RTCPWriterFunc(func(pkts []rtcp.Packet, _ interceptor.Attributes) (int, error) {
		b, err := rtcp.Marshal(pkts)
		if err != nil || peer == nil {
			return 0, err
		}
		return conn.WriteToUDP(b, peer)
	}))
	reader := chain.BindRemoteStream(info(), interceptor.RTPReaderFunc(
		func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
			return copy(b, incoming), a, nil
		}))
	buf, out := make([]byte, 2048), make([]byte, 2048)
	for {
		n, from, err := conn.ReadFromUDP(buf)
		must(err)
		peer = from
		incoming = buf[:n]
		_, _, err = reader.Read(out, interceptor.Attributes{})
		if err != nil {
			log.Print(err)
		}
	}
}

func send(to string, dur time.Duration, logName string, initial, least, most int, fps float64) {
	addr, err := net.ResolveUDPAddr("udp4", to)
	must(err)
	conn, err := net.DialUDP("udp4", nil, addr)
	must(err)
	estimators := make(chan cc.BandwidthEstimator, 1)
	congestion, err := cc.NewInterceptor(func() (cc.BandwidthEstimator, error) {
		return gcc.NewSendSideBWE(gcc.SendSideBWEInitialBitrate(initial), gcc.SendSideBWEMinBitrate(least), gcc.SendSideBWEMaxBitrate(most))
	})
	must(err)
	congestion.OnNewPeerConnection(func(_ string, e cc.BandwidthEstimator) { estimators <- e })
	header, err := twcc.NewHeaderExtensionInterceptor()
	must(err)
	r := &interceptor.Registry{}
	r.Add(congestion)
	r.Add(header)
	chain, err := r.Build("sender")
	must(err)
	estimator := <-estimators
	writer := chain.BindLocalStream(info(), interceptor.RTPWriterFunc(
		func(h *rtp.Header, payload []byte, _ interceptor.Attributes) (int, error) {
			b, err := h.Marshal()
			if err != nil {
				return 0, err
			}
			_, err = conn.Write(append(b, payload...))
			if err != nil {
				log.Print(err)
			}
			return len(b) + len(payload), nil
		}))
	var got int
	rtcpBuf := make([]byte, 2048)
	reader := chain.BindRTCPReader(interceptor.RTCPReaderFunc(
		func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
			return copy(b, rtcpBuf[:got]), interceptor.Attributes{}, nil
		}))
	go func() {
		out := make([]byte, 2048)
		for {
			n, err := conn.Read(rtcpBuf)
			if err != nil {
				continue // the receiver does not listen yet
			}
			got = n
			if _, _, err = reader.Read(out, interceptor.Attributes{}); err != nil {
				log.Print(err)
			}
		}
	}()
	out, err := os.Create(logName)
	must(err)
	defer out.Close()
	fmt.Fprintln(out, "time_s,target_bps,usage,state,delay_estimate_ms,threshold_ms,average_loss,loss_target_bps,delay_target_bps")
	payload := make([]byte, largest)
	rand.Read(payload)
	start := time.Now()
	frame := time.Duration(float64(time.Second) / fps)
	tick := time.NewTicker(frame)
	var seq uint16
	last := start
	for now := range tick.C {
		since := now.Sub(start)
		if since >= dur {
			break
		}
		// The ticker drops ticks during a stall of this program. A dropped tick produces no frame, as a camera does not send
		// missed frames later.
		target := estimator.GetTargetBitrate()
		bytes := int(float64(target) / 8 / fps)
		count := (bytes + largest - 1) / largest
		for i := 0; i < count; i++ {
			n := bytes / count
			seq++
			h := &rtp.Header{Version: 2, PayloadType: pt, SequenceNumber: seq, Timestamp: uint32(since.Seconds() * 90000), SSRC: ssrc, Marker: i == count-1}
			if _, err := writer.Write(h, payload[:n], interceptor.Attributes{}); err != nil {
				log.Print(err)
			}
		}
		if now.Sub(last) >= 100*time.Millisecond {
			s := estimator.GetStats()
			fmt.Fprintf(out, "%.3f,%d,%v,%v,%v,%v,%v,%v,%v\n", since.Seconds(), target, s["usage"], s["state"], s["delayEstimate"], s["delayThreshold"], s["averageLoss"], s["lossTargetBitrate"], s["delayTargetBitrate"])
			last = now
		}
	}
}

func main() {
	isReceiver := flag.Bool("receive", false, "be the receiver")
	listen := flag.String("listen", "0.0.0.0:5004", "where the receiver listens")
	to := flag.String("to", "", "where the sender sends")
	seconds := flag.Float64("t", 100, "seconds")
	logName := flag.String("log", "/dev/null", "CSV of the estimator, every 100 ms")
	initial := flag.Int("initial", 300_000, "first rate in bit/s")
	least := flag.Int("min", 100_000, "lowest rate")
	most := flag.Int("max", 5_000_000, "highest rate")
	fps := flag.Float64("fps", 30, "frames a second")
	feedback := flag.Duration("feedback", 100*time.Millisecond, "between two reports")
	flag.Parse()
	if *isReceiver {
		receive(*listen, *feedback)
	}
	send(*to, time.Duration(*seconds*float64(time.Second)), *logName, *initial, *least, *most, *fps)
}
