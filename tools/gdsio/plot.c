// SPDX-License-Identifier: Apache-2.0
/*
 * plot - a picture in SVG with two panels: throughput over time, and how many
 * requests took how long.
 *
 * A line for each pass. The picture stands alone: no script, no style sheet,
 * no font but the viewer's.
 */
#include "gdsio/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gdsio/picture.h"
#include "gdsio/result.h"
#include "gdsio/xfer.h"

#define WIDTH 840
#define HEIGHT 600
#define LEFT 80
#define PANEL_W 720
#define PANEL_H 200
#define TOP_1 70
#define TOP_2 350

static const char *const colours[] = { "#1f77b4", "#ff7f0e" };

/* A panel: where it stands, and what its edges mean. */
struct panel {
	FILE *out;
	double top;
	double x_min, x_max; /* as drawn: logarithms where log_x */
	double y_max;
	bool log_x;
};

static double at_x(const struct panel *panel, double x)
{
	return LEFT +
	       PANEL_W * (x - panel->x_min) / (panel->x_max - panel->x_min);
}

static double at_y(const struct panel *panel, double y)
{
	return panel->top + PANEL_H * (1 - y / panel->y_max);
}

static void text(FILE *out, double x, double y, const char *anchor,
		 const char *words)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y,
		anchor);
	for (; *words; words++) {
		if (*words == '&' || *words == '<' || *words == '>')
			fprintf(out, "&#%d;", *words);
		else if ((unsigned char)*words >= 0x20)
			fputc(*words, out);
	}
	fprintf(out, "</text>\n");
}

static void line(FILE *out, double x1, double y1, double x2, double y2)
{
	fprintf(out,
		"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
		"stroke=\"#ddd\"/>\n",
		x1, y1, x2, y2);
}

/* The next of 1, 2, 5 times a power of ten: a step that reads well. */
static double round_step(double raw)
{
	double power = pow(10, floor(log10(raw)));
	double part = raw / power;

	return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static void y_axis(struct panel *panel, double highest)
{
	double step = round_step(highest > 0 ? highest / 4 : 1);
	char label[32];

	panel->y_max = step * fmax(1, ceil(highest / step * 1.05));
	for (double y = 0; y <= panel->y_max * 1.001; y += step) {
		line(panel->out, LEFT, at_y(panel, y), LEFT + PANEL_W,
		     at_y(panel, y));
		snprintf(label, sizeof(label), "%g", y);
		text(panel->out, LEFT - 8, at_y(panel, y) + 4, "end", label);
	}
}

static void x_axis(const struct panel *panel, const char *unit)
{
	double step = panel->log_x ? 1 : round_step(panel->x_max / 8);
	char label[48];

	for (double x = ceil(panel->x_min / step) * step;
	     x <= panel->x_max * 1.001; x += step) {
		line(panel->out, at_x(panel, x), panel->top, at_x(panel, x),
		     panel->top + PANEL_H);
		snprintf(label, sizeof(label), "%g",
			 panel->log_x ? pow(10, x) : x);
		text(panel->out, at_x(panel, x), panel->top + PANEL_H + 18,
		     "middle", label);
	}
	text(panel->out, LEFT + PANEL_W, panel->top + PANEL_H + 36, "end",
	     unit);
}

/* Every so many samples make a step of the line, a hundred steps at most. */
static int stride(const struct watch *watch)
{
	return watch->nr / 100 + 1;
}

/* The sample that step i ends with, or before the first: zero. */
static struct sample end_of(const struct watch *watch, int i)
{
	int at = i * stride(watch) + stride(watch) - 1;

	if (i < 0)
		return (struct sample){ 0 };
	return watch->samples[at < watch->nr ? at : watch->nr - 1];
}

static int nr_steps(const struct watch *watch)
{
	return (watch->nr + stride(watch) - 1) / stride(watch);
}

static double rate_of(const struct watch *watch, int i)
{
	struct sample from = end_of(watch, i - 1);
	struct sample to = end_of(watch, i);

	return result_rate(to.bytes - from.bytes, to.at - from.at);
}

static void begin_line(FILE *out, int nr)
{
	fprintf(out,
		"<polyline fill=\"none\" stroke=\"%s\" "
		"stroke-width=\"1.5\" points=\"",
		colours[nr]);
}

static void draw_rates(FILE *out, const struct outcome *outcomes, int nr)
{
	struct panel panel = { .out = out, .top = TOP_1 };
	double highest = 0;

	for (int p = 0; p < nr; p++) {
		const struct watch *watch = &outcomes[p].watch;

		for (int i = 0; i < nr_steps(watch); i++) {
			panel.x_max = fmax(panel.x_max, end_of(watch, i).at);
			highest = fmax(highest, rate_of(watch, i));
		}
	}
	y_axis(&panel, highest);
	x_axis(&panel, "seconds");
	text(out, LEFT, TOP_1 - 12, "start", "throughput, GiB/s");
	for (int p = 0; p < nr; p++) {
		const struct watch *watch = &outcomes[p].watch;

		begin_line(out, p);
		for (int i = 0; i < nr_steps(watch); i++)
			fprintf(out, "%.1f,%.1f %.1f,%.1f ",
				at_x(&panel, end_of(watch, i - 1).at),
				at_y(&panel, rate_of(watch, i)),
				at_x(&panel, end_of(watch, i).at),
				at_y(&panel, rate_of(watch, i)));
		fprintf(out, "\"/>\n");
	}
}

static double part_of(const struct tally *tally, int bucket)
{
	return tally->ops ? 100.0 * (double)tally->bucket[bucket] /
				    (double)tally->ops :
			    0;
}

static double log_us(int bucket)
{
	return log10(fmax(tally_bucket_ns(bucket), 1) / 1e3);
}

static void draw_histogram(const struct panel *panel, const struct tally *tally,
			   int nr)
{
	begin_line(panel->out, nr);
	for (int i = 0; i + 1 < TALLY_BUCKETS; i++) {
		if (log_us(i) < panel->x_min || log_us(i + 1) > panel->x_max)
			continue;
		fprintf(panel->out, "%.1f,%.1f %.1f,%.1f ",
			at_x(panel, log_us(i)), at_y(panel, part_of(tally, i)),
			at_x(panel, log_us(i + 1)),
			at_y(panel, part_of(tally, i)));
	}
	fprintf(panel->out, "\"/>\n");
}

static void draw_latencies(FILE *out, const struct outcome *outcomes, int nr)
{
	struct panel panel = {
		.out = out, .top = TOP_2, .log_x = true, .x_min = 9, .x_max = -9
	};
	double highest = 0;

	for (int p = 0; p < nr; p++) {
		const struct tally *tally = &outcomes[p].all;

		panel.x_min = fmin(panel.x_min,
				   log10(fmax((double)tally->min_ns, 1) / 1e3));
		panel.x_max = fmax(panel.x_max,
				   log10(fmax((double)tally->max_ns, 1) / 1e3));
		for (int i = 0; i < TALLY_BUCKETS; i++)
			highest = fmax(highest, part_of(tally, i));
	}
	panel.x_min = floor(panel.x_min);
	panel.x_max = fmax(ceil(panel.x_max + 0.1), panel.x_min + 1);
	y_axis(&panel, highest);
	x_axis(&panel, "latency of a request, microseconds");
	text(out, LEFT, TOP_2 - 12, "start", "percent of the requests");
	for (int p = 0; p < nr; p++)
		draw_histogram(&panel, &outcomes[p].all, p);
}

static void draw_title(FILE *out, const struct plan *plan,
		       const struct outcome *outcomes, int nr)
{
	char words[256];

	for (int p = 0; p < nr; p++) {
		const struct outcome *o = &outcomes[p];

		snprintf(words, sizeof(words),
			 "%s %s, %d threads, %s memory: %.2f GiB/s, median "
			 "%.1f us, p99 %.1f us",
			 result_op_name(plan, o->write),
			 xfer_way((enum xfer)plan->xfer)->name, o->threads,
			 memory_name(o->memory),
			 result_rate(tally_bytes(&o->all), o->seconds),
			 tally_percentile(&o->all, 0.5) / 1e3,
			 tally_percentile(&o->all, 0.99) / 1e3);
		fprintf(out,
			"<rect x=\"%d\" y=\"%d\" width=\"12\" "
			"height=\"4\" fill=\"%s\"/>\n",
			LEFT, 15 + 18 * p, colours[p]);
		text(out, LEFT + 20, 20 + 18 * p, "start", words);
	}
}

bool plot_write(const char *name, const struct plan *plan,
		const struct outcome *outcomes, int nr)
{
	struct picture picture;
	FILE *out;

	if (!picture_begin(&picture, name))
		return false;
	out = picture.out;
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" viewBox=\"0 0 %d %d\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	draw_title(out, plan, outcomes, nr);
	draw_rates(out, outcomes, nr);
	draw_latencies(out, outcomes, nr);
	fprintf(out, "</svg>\n");
	return picture_end(&picture);
}
