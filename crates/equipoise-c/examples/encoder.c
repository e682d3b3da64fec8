/* Sends a live encoder's video, whose bitrate follows the rate of the path, to `equipoise receive --output picture.h264`:
 *
 *   EQUIPOISE_KEY=... encoder HOST:PORT SECONDS
 *
 * Build it with $(pkg-config --cflags --libs equipoise libavcodec libavutil). */
#define _POSIX_C_SOURCE 200809L
#include <equipoise.h>
#include <libavcodec/avcodec.h>
#include <libavutil/opt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WIDTH = 640, HEIGHT = 360, FRAMES_PER_S = 25 };

static void set_rate(AVCodecContext *encoder, int64_t rate_bps) {
    encoder->bit_rate = encoder->rc_max_rate = rate_bps;
    encoder->rc_buffer_size = (int)(rate_bps / 4); /* 0.25 s of video, in bits */
}

static AVCodecContext *open_encoder(int64_t rate_bps) {
    AVCodecContext *encoder = avcodec_alloc_context3(avcodec_find_encoder_by_name("libx264"));
    if (encoder == NULL) return NULL;
    encoder->width = WIDTH, encoder->height = HEIGHT, encoder->pix_fmt = AV_PIX_FMT_YUV420P;
    encoder->time_base = (AVRational){1, FRAMES_PER_S};
    encoder->gop_size = 10 * FRAMES_PER_S;
    av_opt_set(encoder->priv_data, "preset", "ultrafast", 0);
    av_opt_set(encoder->priv_data, "tune", "zerolatency", 0);
    set_rate(encoder, rate_bps);
    return avcodec_open2(encoder, encoder->codec, NULL) == 0 ? encoder : NULL;
}

static void paint(AVFrame *frame, int number) { /* moving waves, with noise so that the video needs a high bitrate */
    for (int plane = 1; plane < 3; plane++) memset(frame->data[plane], 128, (size_t)frame->linesize[plane] * HEIGHT / 2);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            frame->data[0][y * frame->linesize[0] + x] = (uint8_t)((x * y >> 6) + 3 * number + rand() % 24);
}

int main(int count, char **words) {
    struct eq_sender_options options = {.struct_size = sizeof options, .key = getenv("EQUIPOISE_KEY")};
    struct eq_sender_summary summary = {.struct_size = sizeof summary};
    eq_sender *sender;
    if (count != 3) return fprintf(stderr, "usage: encoder HOST:PORT SECONDS\n"), 2;
    av_log_set_level(AV_LOG_ERROR);
    if (eq_sender_open(words[1], &options, &sender) != EQ_OK)
        return fprintf(stderr, "%s: %s\n", words[1], eq_last_error_message()), 1;

    AVCodecContext *encoder = open_encoder((int64_t)eq_sender_media_rate_bps(sender));
    if (encoder == NULL) return fprintf(stderr, "libavcodec has no libx264\n"), 1;
    AVFrame *frame = av_frame_alloc();
    AVPacket *packet = av_packet_alloc();
    frame->width = WIDTH, frame->height = HEIGHT, frame->format = AV_PIX_FMT_YUV420P;
    if (av_frame_get_buffer(frame, 0) != 0) return 1;
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    uint32_t events = 0;
    for (int number = 0; number < atoi(words[2]) * FRAMES_PER_S && !(events & EQ_EVENT_END); number++) {
        events = eq_sender_events(sender);
        if (events & EQ_EVENT_RATE) set_rate(encoder, (int64_t)eq_sender_media_rate_bps(sender));
        if (av_frame_make_writable(frame) != 0) break;
        if (events & EQ_EVENT_KEY_FRAME) frame->pict_type = AV_PICTURE_TYPE_I;
        paint(frame, number);
        frame->pts = number;
        if (avcodec_send_frame(encoder, frame) != 0) break;
        frame->pict_type = AV_PICTURE_TYPE_NONE;
        while (avcodec_receive_packet(encoder, packet) == 0) {
            if (eq_sender_write(sender, packet->data, (size_t)packet->size, 0) != EQ_OK)
                frame->pict_type = AV_PICTURE_TYPE_I; /* this frame is skipped, so the next frame must be a key frame */
            av_packet_unref(packet);
        }
        if (number % FRAMES_PER_S == 0) printf("%d s: %.0f kbit/s\n", number / FRAMES_PER_S, encoder->bit_rate / 1e3);
        if ((due.tv_nsec += 1000000000 / FRAMES_PER_S) >= 1000000000) due.tv_nsec -= 1000000000, due.tv_sec++;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    }
    av_packet_free(&packet), av_frame_free(&frame), avcodec_free_context(&encoder);
    if (eq_sender_close(sender, 5000, &summary) != EQ_OK) return fprintf(stderr, "%s\n", eq_last_error_message()), 1;
    return printf("%llu packets, %llu lost\n", (unsigned long long)summary.packets, (unsigned long long)summary.lost), 0;
}
