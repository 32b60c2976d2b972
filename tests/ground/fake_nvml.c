/* A libnvidia-ml.so.1 whose cards are the lines of a file, read anew with each question:
 *   <id> <name> <memory total> <memory used> <utilisation %> <temperature> <milliwatts> <ok|lost>
 * The file is named by FAKE_NVML_CARDS; without it the driver is not loaded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9, LOST = 15, MOST = 16 };

struct card {
    char id[80], name[80], state[8];
    unsigned long long total, used;
    unsigned use, heat, power;
};
struct memory { unsigned long long total, free, used; };
struct rates { unsigned gpu, memory; };

static struct card cards[MOST];
static int slots[MOST];

static int count_cards(void) {
    const char *path = getenv("FAKE_NVML_CARDS");
    FILE *file = path ? fopen(path, "r") : NULL;
    int count = 0;
    if (!file) return -1;
    while (count < MOST) {
        struct card *c = &cards[count];
        if (fscanf(file, "%79s %79s %llu %llu %u %u %u %7s", c->id, c->name, &c->total, &c->used,
                   &c->use, &c->heat, &c->power, c->state) != 8) break;
        slots[count] = count;
        count++;
    }
    fclose(file);
    return count;
}

/* The card behind a handle as the file says now, or why there is none. */
static int look(const int *slot, struct card **card) {
    int count = count_cards();
    if (count < 0) return DRIVER_NOT_LOADED;
    if (!slot || *slot >= count) return INVALID;
    *card = &cards[*slot];
    return strcmp((*card)->state, "lost") ? SUCCESS : LOST;
}

#define CARD struct card *c; int e = look(d, &c); if (e) return e

int nvmlInitWithFlags(unsigned flags) { (void)flags; return count_cards() < 0 ? DRIVER_NOT_LOADED : SUCCESS; }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int e) { return e == LOST ? "GPU is lost" : "fake error"; }
int nvmlDeviceGetCount_v2(unsigned *n) {
    int count = count_cards();
    if (count < 0) return DRIVER_NOT_LOADED;
    *n = (unsigned)count;
    return SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, int **d) {
    struct card *c;
    if (i >= MOST) return INVALID;
    slots[i] = (int)i;
    *d = &slots[i];
    return look(*d, &c);
}
int nvmlDeviceGetName(int *d, char *text, unsigned size) { CARD; snprintf(text, size, "%s", c->name); return SUCCESS; }
int nvmlDeviceGetUUID(int *d, char *text, unsigned size) { CARD; snprintf(text, size, "%s", c->id); return SUCCESS; }
int nvmlDeviceGetMemoryInfo(int *d, struct memory *m) {
    CARD;
    m->total = c->total;
    m->used = c->used;
    m->free = c->total - c->used;
    return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(int *d, struct rates *r) { CARD; r->gpu = c->use; r->memory = 0; return SUCCESS; }
int nvmlDeviceGetTemperature(int *d, int sensor, unsigned *t) { CARD; (void)sensor; *t = c->heat; return SUCCESS; }
int nvmlDeviceGetPowerUsage(int *d, unsigned *p) { CARD; *p = c->power; return c->power ? SUCCESS : NOT_SUPPORTED; }
