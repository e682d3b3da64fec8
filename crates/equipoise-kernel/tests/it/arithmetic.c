/* Reads lines with a letter and seven numbers. The letter selects a function of fixed.h. For each line, the program
 * writes the function's result. arithmetic.rs runs this program. */
#include <stdio.h>

typedef unsigned long long u64;
typedef unsigned int u32;

#include "fixed.h"

int main(void)
{
	u64 v[9];
	char kind;

	while (scanf(" %c %llu %llu %llu %llu %llu %llu %llu", &kind, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6]) ==
	       8) {
		static struct noise noise;
		struct law law = { v[0], v[1] };
		struct path path = { v[2], v[3], v[4] };
		u64 answer = 0;

		switch (kind) {
		case 'w':
			answer = law_window(&law, path, v[5], v[6]);
			break;
		case 'c':
			answer = path_checked(&path) ? law_converged(&law, &path) : 0;
			break;
		case 'n':
			noise_push(&noise, v[2]);
			answer = noise_gamma(&noise, v[0], v[1]);
			break;
		case 'o':
			answer = oscillated(v[0], v[1], v[2], v[3]);
			break;
		case 'a':
			answer = train_available(v[0], v[1], v[2], v[3], v[4]);
			break;
		case 'r':
			answer = train_rate(v[0], v[1], v[2]);
			break;
		}
		printf("%llu\n", answer);
	}
	return 0;
}
