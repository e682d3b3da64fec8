// A WebRTC receiver that uses pion and sends transport-wide congestion control feedback. The sender is Chromium, with
// its own GCC, pacer and encoder.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/webrtc/v4"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	listen := flag.String("listen", "0.0.0.0:8080", "where offers are posted to")
	seconds := flag.Float64("t", 100, "seconds; it ends by itself two minutes later")
	feedback := flag.Duration("feedback", 50*time.Millisecond, "between two reports; Chromium's own receiver takes 50 to 250 ms")
	flag.Parse()
	go func() { time.Sleep(time.Duration((*seconds + 120) * float64(time.Second))); os.Exit(0) }()

	m := &webrtc.MediaEngine{}
	// Neither NACK nor RTX is enabled, because the other compared senders do not retransmit, and pion repeats a NACK every
	// 100 ms even if the round-trip time is longer.
	must(m.RegisterCodec(webrtc.RTPCodecParameters{RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8, ClockRate: 90000,
		RTCPFeedback: []webrtc.RTCPFeedback{{Type: webrtc.TypeRTCPFBTransportCC}}}, PayloadType: 96}, webrtc.RTPCodecTypeVideo))
	r := &interceptor.Registry{}
	must(webrtc.ConfigureRTCPReports(r))
	m.RegisterFeedback(webrtc.RTCPFeedback{Type: webrtc.TypeRTCPFBTransportCC}, webrtc.RTPCodecTypeVideo)
	must(m.RegisterHeaderExtension(webrtc.RTPHeaderExtensionCapability{URI: "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"}, webrtc.RTPCodecTypeVideo))
	g, err := twcc.NewSenderInterceptor(twcc.SendInterval(*feedback))
	must(err)
	r.Add(g)
	host, _, err := net.SplitHostPort(*listen)
	must(err)
	s := webrtc.SettingEngine{}
	s.SetIPFilter(func(ip net.IP) bool { return ip.String() == host })
	api := webrtc.NewAPI(webrtc.WithMediaEngine(m), webrtc.WithInterceptorRegistry(r), webrtc.WithSettingEngine(s))

	http.HandleFunc("/offer", func(w http.ResponseWriter, q *http.Request) {
		var offer webrtc.SessionDescription
		must(json.NewDecoder(q.Body).Decode(&offer))
		pc, err := api.NewPeerConnection(webrtc.Configuration{})
		must(err)
		pc.OnTrack(func(t *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
			log.Print("track ", t.Codec().MimeType)
			b := make([]byte, 2000)
			for {
				if _, _, err := t.Read(b); err != nil {
					return
				}
			}
		})
		pc.OnConnectionStateChange(func(c webrtc.PeerConnectionState) { log.Print(c) })
		must(pc.SetRemoteDescription(offer))
		answer, err := pc.CreateAnswer(nil)
		must(err)
		done := webrtc.GatheringCompletePromise(pc)
		must(pc.SetLocalDescription(answer))
		<-done
		must(json.NewEncoder(w).Encode(pc.LocalDescription()))
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
