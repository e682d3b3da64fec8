//! The sources that comments and documents may cite.

/// Papers: the name used in cites, and the full title.
pub(super) const PAPERS: &[(&str, &str)] = &[
    ("Anscombe 1973", "F. J. Anscombe, *Graphs in statistical analysis*, The American Statistician, vol. 27, no. 1"),
    (
        "Asvarujanon 2014",
        "N. Asvarujanon, K. Leibnitz, N. Wakamiya and M. Murata, *An attractor perturbation-based traffic distribution \
         method and its practical experiments*, IEICE Proceeding Series, vol. 2, pp. 350-353",
    ),
    (
        "Box 1958",
        "G. E. P. Box and M. E. Muller, *A note on the generation of random normal deviates*, Annals of Mathematical \
         Statistics, vol. 29, no. 2",
    ),
    (
        "Brakmo 1995",
        "L. S. Brakmo and L. L. Peterson, *TCP Vegas: end to end congestion avoidance on a global Internet*, IEEE Journal \
         on Selected Areas in Communications, vol. 13, no. 8",
    ),
    (
        "Carlucci 2016",
        "G. Carlucci, L. De Cicco, S. Holmer and S. Mascolo, *Analysis and design of the Google congestion control for web \
         real-time communication (WebRTC)*, MMSys",
    ),
    (
        "Chan 1983",
        "T. F. Chan, G. H. Golub and R. J. LeVeque, *Algorithms for computing the sample variance: analysis and \
         recommendations*, The American Statistician, vol. 37, no. 3",
    ),
    (
        "Dovrolis 2001",
        "C. Dovrolis, P. Ramanathan and D. Moore, *What do packet dispersion techniques measure?*, INFOCOM",
    ),
    (
        "Elliott 1963",
        "E. O. Elliott, *Estimates of error rates for codes on burst-noise channels*, Bell System Technical Journal, \
         vol. 42, no. 5",
    ),
    (
        "Fitzek 2001",
        "F. H. P. Fitzek and M. Reisslein, *MPEG-4 and H.263 video traces for network performance evaluation*, IEEE \
         Network, vol. 15, no. 6",
    ),
    (
        "Floyd 1992",
        "S. Floyd and V. Jacobson, *On traffic phase effects in packet-switched gateways*, Internetworking: Research \
         and Experience, vol. 3, no. 3",
    ),
    (
        "Freedman 1981",
        "D. Freedman and P. Diaconis, *On the histogram as a density estimator: L2 theory*, Zeitschrift für \
         Wahrscheinlichkeitstheorie, vol. 57",
    ),
    (
        "Gilbert 1960",
        "E. N. Gilbert, *Capacity of a burst-noise channel*, Bell System Technical Journal, vol. 39, no. 5",
    ),
    (
        "Holm 1979",
        "S. Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of Statistics, vol. 6, \
         no. 2",
    ),
    (
        "Hyndman 1996",
        "R. J. Hyndman and Y. Fan, *Sample quantiles in statistical packages*, The American Statistician, vol. 50, no. 4",
    ),
    (
        "Jain 1984",
        "R. Jain, D. Chiu and W. Hawe, *A quantitative measure of fairness and discrimination for resource allocation in \
         shared computer systems*, DEC Research Report TR-301",
    ),
    (
        "Karn 1987",
        "P. Karn and C. Partridge, *Improving round-trip time estimates in reliable transport protocols*, SIGCOMM",
    ),
    (
        "Kelly 2003",
        "T. Kelly, *Scalable TCP: improving performance in highspeed wide area networks*, ACM SIGCOMM Computer \
         Communication Review, vol. 33, no. 2",
    ),
    ("Keshav 1991", "S. Keshav, *A control-theoretic approach to flow control*, SIGCOMM"),
    (
        "Kodama 2009",
        "M. Kodama, *Increasing robustness to environmental changes for congestion control mechanisms*, Master's \
         thesis, Osaka University",
    ),
    (
        "Marquardt 1963",
        "D. W. Marquardt, *An algorithm for least-squares estimation of nonlinear parameters*, Journal of the Society \
         for Industrial and Applied Mathematics, vol. 11, no. 2",
    ),
    (
        "Marsaglia 2000",
        "G. Marsaglia and W. W. Tsang, *The ziggurat method for generating random variables*, Journal of Statistical \
         Software, vol. 5, no. 8",
    ),
    (
        "Moon 1999",
        "S. B. Moon, P. Skelly and D. Towsley, *Estimation and removal of clock skew from network delay measurements*, \
         INFOCOM",
    ),
    (
        "Narayanan 2020",
        "A. Narayanan, E. Ramadan, R. Mehta and others, *Lumos5G: mapping and predicting commercial mmWave 5G \
         throughput*, IMC",
    ),
    (
        "Netravali 2015",
        "R. Netravali, A. Sivaraman, S. Das, A. Goyal, K. Winstein, J. Mickens and H. Balakrishnan, *Mahimahi: accurate \
         record-and-replay for HTTP*, USENIX ATC",
    ),
    (
        "Newcombe 1998",
        "R. G. Newcombe, *Interval estimation for the difference between independent proportions: comparison of eleven \
         methods*, Statistics in Medicine, vol. 17, no. 8",
    ),
    (
        "Nicol 1993",
        "D. M. Nicol, *The cost of conservative synchronization in parallel discrete event simulations*, Journal of the \
         ACM, vol. 40, no. 2",
    ),
    (
        "Raca 2020",
        "D. Raca, D. Leahy, C. J. Sreenan and J. J. Quinlan, *Beyond throughput, the next generation: a 5G dataset with \
         channel and context metrics*, MMSys",
    ),
    (
        "Rejaie 1999",
        "R. Rejaie, M. Handley and D. Estrin, *RAP: an end-to-end rate-based congestion control mechanism for realtime \
         streams in the Internet*, INFOCOM",
    ),
    (
        "Seeling 2012",
        "P. Seeling and M. Reisslein, *Video transport evaluation with H.264 video traces*, IEEE Communications Surveys \
         and Tutorials, vol. 14, no. 4",
    ),
    (
        "Sen 1968",
        "P. K. Sen, *Estimates of the regression coefficient based on Kendall's tau*, Journal of the American \
         Statistical Association, vol. 63, no. 324",
    ),
    (
        "Sisalem 1998",
        "D. Sisalem and H. Schulzrinne, *The loss-delay based adjustment algorithm: a TCP-friendly adaptation scheme*, \
         NOSSDAV",
    ),
    ("Steele 2014", "G. L. Steele, D. Lea and C. H. Flood, *Fast splittable pseudorandom number generators*, OOPSLA"),
    (
        "Subramanya 2003",
        "M. Peng, S. R. Subramanya and J. Sarangapani, *Rate-based end-to-end congestion control of multimedia traffic \
         in packet switched networks*, ITCC",
    ),
    (
        "Tobe 1999",
        "Y. Tobe, Y. Tamura, H. Nishino and H. Tokuda, *TCP-rate-probing-based adaptation for continuous media \
         communications*",
    ),
    (
        "Waki 2013",
        "M. Waki, *A rate control mechanism with attractor perturbation model for stabilizing end-to-end delays*, \
         Master's thesis, Osaka University",
    ),
    (
        "Welford 1962",
        "B. P. Welford, *Note on a method for calculating corrected sums of squares and products*, Technometrics, \
         vol. 4, no. 3",
    ),
    (
        "Wilson 1927",
        "E. B. Wilson, *Probable inference, the law of succession, and statistical inference*, Journal of the American \
         Statistical Association, vol. 22",
    ),
];

/// RFCs: number and title.
pub(super) const RFCS: &[(u32, &str)] = &[
    (768, "User Datagram Protocol"),
    (791, "Internet Protocol"),
    (792, "Internet Control Message Protocol"),
    (826, "An Ethernet Address Resolution Protocol"),
    (894, "A Standard for the Transmission of IP Datagrams over Ethernet Networks"),
    (1071, "Computing the Internet Checksum"),
    (1122, "Requirements for Internet Hosts - Communication Layers"),
    (1624, "Computation of the Internet Checksum via Incremental Update"),
    (2018, "TCP Selective Acknowledgment Options"),
    (2474, "Definition of the Differentiated Services Field (DS Field) in the IPv4 and IPv6 Headers"),
    (2544, "Benchmarking Methodology for Network Interconnect Devices"),
    (2597, "Assured Forwarding PHB Group"),
    (2606, "Reserved Top Level DNS Names"),
    (2697, "A Single Rate Three Color Marker"),
    (3042, "Enhancing TCP's Loss Recovery Using Limited Transmit"),
    (3168, "The Addition of Explicit Congestion Notification (ECN) to IP"),
    (3246, "An Expedited Forwarding PHB (Per-Hop Behavior)"),
    (3550, "RTP: A Transport Protocol for Real-Time Applications"),
    (3551, "RTP Profile for Audio and Video Conferences with Minimal Control"),
    (3611, "RTP Control Protocol Extended Reports (RTCP XR)"),
    (3711, "The Secure Real-time Transport Protocol (SRTP)"),
    (4145, "TCP-Based Media Transport in the Session Description Protocol (SDP)"),
    (4180, "Common Format and MIME Type for Comma-Separated Values (CSV) Files"),
    (4291, "IP Version 6 Addressing Architecture"),
    (4443, "Internet Control Message Protocol (ICMPv6) for the Internet Protocol Version 6 (IPv6) Specification"),
    (4568, "Session Description Protocol (SDP) Security Descriptions for Media Streams"),
    (4585, "Extended RTP Profile for Real-time Transport Control Protocol (RTCP)-Based Feedback (RTP/AVPF)"),
    (4588, "RTP Retransmission Payload Format"),
    (4648, "The Base16, Base32, and Base64 Data Encodings"),
    (4737, "Packet Reordering Metrics"),
    (4861, "Neighbor Discovery for IP version 6 (IPv6)"),
    (4862, "IPv6 Stateless Address Autoconfiguration"),
    (4961, "Symmetric RTP / RTP Control Protocol (RTCP)"),
    (5104, "Codec Control Messages in the RTP Audio-Visual Profile with Feedback (AVPF)"),
    (5246, "The Transport Layer Security (TLS) Protocol Version 1.2"),
    (5289, "TLS Elliptic Curve Cipher Suites with SHA-256/384 and AES Galois Counter Mode (GCM)"),
    (5348, "TCP Friendly Rate Control (TFRC): Protocol Specification"),
    (5506, "Support for Reduced-Size Real-Time Transport Control Protocol (RTCP): Opportunities and Consequences"),
    (5681, "TCP Congestion Control"),
    (5737, "IPv4 Address Blocks Reserved for Documentation"),
    (5761, "Multiplexing RTP Data and Control Packets on a Single Port"),
    (
        5763,
        "Framework for Establishing a Secure Real-time Transport Protocol (SRTP) Security Context Using Datagram Transport Layer Security (DTLS)",
    ),
    (
        5764,
        "Datagram Transport Layer Security (DTLS) Extension to Establish Keys for the Secure Real-time Transport Protocol (SRTP)",
    ),
    (5865, "A Differentiated Services Code Point (DSCP) for Capacity-Admitted Traffic"),
    (5869, "HMAC-based Extract-and-Expand Key Derivation Function (HKDF)"),
    (5905, "Network Time Protocol Version 4: Protocol and Algorithms Specification"),
    (6051, "Rapid Synchronisation of RTP Flows"),
    (6184, "RTP Payload Format for H.264 Video"),
    (6298, "Computing TCP's Retransmission Timer"),
    (6347, "Datagram Transport Layer Security Version 1.2"),
    (6582, "The NewReno Modification to TCP's Fast Recovery Algorithm"),
    (6675, "A Conservative Loss Recovery Algorithm Based on Selective Acknowledgment (SACK) for TCP"),
    (6817, "Low Extra Delay Background Transport (LEDBAT)"),
    (6928, "Increasing TCP's Initial Window"),
    (6937, "Proportional Rate Reduction for TCP"),
    (7251, "AES-CCM Elliptic Curve Cryptography (ECC) Cipher Suites for TLS"),
    (6679, "Explicit Congestion Notification (ECN) for RTP over UDP"),
    (7323, "TCP Extensions for High Performance"),
    (7464, "JavaScript Object Notation (JSON) Text Sequences"),
    (7468, "Textual Encodings of PKIX, PKCS, and CMS Structures"),
    (7714, "AES-GCM Authenticated Encryption in the Secure Real-time Transport Protocol (SRTP)"),
    (7905, "ChaCha20-Poly1305 Cipher Suites for Transport Layer Security (TLS)"),
    (7983, "Multiplexing Scheme Updates for Secure Real-time Transport Protocol (SRTP) Extension for DTLS"),
    (
        8033,
        "Proportional Integral Controller Enhanced (PIE): A Lightweight Control Scheme to Address the Bufferbloat Problem",
    ),
    (8083, "Multimedia Congestion Control: Circuit Breakers for Unicast RTP Sessions"),
    (
        8122,
        "Connection-Oriented Media Transport over the Transport Layer Security (TLS) Protocol in the Session Description Protocol (SDP)",
    ),
    (8200, "Internet Protocol, Version 6 (IPv6) Specification"),
    (8285, "A General Mechanism for RTP Header Extensions"),
    (8289, "Controlled Delay Active Queue Management"),
    (8290, "The Flow Queue CoDel Packet Scheduler and Active Queue Management Algorithm"),
    (8298, "Self-Clocked Rate Adaptation for Multimedia"),
    (8446, "The Transport Layer Security (TLS) Protocol Version 1.3"),
    (8622, "A Lower-Effort Per-Hop Behavior (LE PHB) for Differentiated Services"),
    (8698, "Network-Assisted Dynamic Adaptation (NADA): A Unified Congestion Control Scheme for Real-Time Media"),
    (8699, "Coupled Congestion Control for RTP Media"),
    (8837, "Differentiated Services Code Point (DSCP) Packet Markings for WebRTC QoS"),
    (
        8842,
        "Session Description Protocol (SDP) Offer/Answer Considerations for Datagram Transport Layer Security (DTLS) and Transport Layer Security (TLS)",
    ),
    (8593, "Video Traffic Models for RTP Congestion Control Evaluations"),
    (
        8839,
        "Session Description Protocol (SDP) Offer/Answer Procedures for Interactive Connectivity Establishment (ICE)",
    ),
    (8866, "SDP: Session Description Protocol"),
    (8867, "Test Cases for Evaluating Congestion Control for Interactive Real-Time Media"),
    (8868, "Evaluating Congestion Control for Interactive Real-Time Media"),
    (8888, "RTP Control Protocol (RTCP) Feedback for Congestion Control"),
    (9000, "QUIC: A UDP-Based Multiplexed and Secure Transport"),
    (9002, "QUIC Loss Detection and Congestion Control"),
    (9147, "The Datagram Transport Layer Security (DTLS) Protocol Version 1.3"),
    (9293, "Transmission Control Protocol (TCP)"),
    (
        9331,
        "The Explicit Congestion Notification (ECN) Protocol for Low Latency, Low Loss, and Scalable Throughput (L4S)",
    ),
    (9332, "Dual-Queue Coupled Active Queue Management (AQM) for Low Latency, Low Loss, and Scalable Throughput (L4S)"),
    (9438, "CUBIC for Fast and Long-Distance Networks"),
];

/// Internet drafts: the name with its version, and the title.
pub(super) const DRAFTS: &[(&str, &str)] = &[
    ("draft-holmer-rmcat-transport-wide-cc-extensions-01", "RTP Extensions for Transport-wide Congestion Control"),
    ("draft-ietf-avtcore-mprtp-03", "Multipath RTP (MPRTP)"),
    ("draft-ietf-ccwg-rfc8298bis-screamv2-01", "Self-Clocked Rate Adaptation for Multimedia, version 2 (SCReAMv2)"),
    ("draft-ietf-opsawg-pcapng-02", "PCAP Next Generation (pcapng) Capture File Format"),
    ("draft-ietf-quic-qlog-main-schema-14", "qlog: Structured Logging for Network Protocols"),
    ("draft-ietf-quic-qlog-quic-events-13", "QUIC event definitions for qlog"),
    ("draft-ietf-rmcat-gcc-02", "A Google Congestion Control Algorithm for Real-Time Communication"),
];
