/* Made from trigmon/mq/attributes.py by `python -m trigmon.mqi.attribute_header`; not to be changed by hand. */
#ifndef TRIGMON_ATTRIBUTES_H
#define TRIGMON_ATTRIBUTES_H

#include <stddef.h>
#include <stdint.h>

struct word {
    const char *text;
    int32_t number;
};

/* ``length`` is of text, 0 for numbers; ``is_name`` is the attribute that names the object itself. */
struct attribute {
    int32_t selector;
    int32_t length;
    const char *name;
    int is_name;
    const struct word *words;
};

static const struct word words_of_inhibit_get[] = {{"allowed", 0}, {"inhibited", 1}, {NULL, 0}};
static const struct word words_of_inhibit_put[] = {{"allowed", 0}, {"inhibited", 1}, {NULL, 0}};
static const struct word words_of_def_persistence[] = {{"not_persistent", 0}, {"persistent", 1}, {"as_q_def", 2}, {NULL, 0}};
static const struct word words_of_def_input_open_option[] = {{"input_shared", 2}, {"input_exclusive", 4}, {NULL, 0}};
static const struct word words_of_shareability[] = {{"not_shareable", 0}, {"shareable", 1}, {NULL, 0}};
static const struct word words_of_msg_delivery_sequence[] = {{"priority", 0}, {"fifo", 1}, {NULL, 0}};
static const struct word words_of_usage[] = {{"normal", 0}, {"transmission", 1}, {NULL, 0}};
static const struct word words_of_harden_get_backout[] = {{"not_hardened", 0}, {"hardened", 1}, {NULL, 0}};
static const struct word words_of_trigger_control[] = {{"off", 0}, {"on", 1}, {NULL, 0}};
static const struct word words_of_trigger_type[] = {{"none", 0}, {"first", 1}, {"every", 2}, {"depth", 3}, {NULL, 0}};
static const struct word words_of_cap_expiry[] = {{"nolimit", -1}, {NULL, 0}};
static const struct word words_of_q_depth_max_event[] = {{"disabled", 0}, {"enabled", 1}, {NULL, 0}};
static const struct word words_of_q_depth_high_event[] = {{"disabled", 0}, {"enabled", 1}, {NULL, 0}};
static const struct word words_of_q_depth_low_event[] = {{"disabled", 0}, {"enabled", 1}, {NULL, 0}};
static const struct word words_of_q_service_interval_event[] = {{"none", 0}, {"high", 1}, {"ok", 2}, {NULL, 0}};
static const struct word words_of_definition_type[] = {{"predefined", 1}, {"permanent_dynamic", 2}, {"temporary_dynamic", 3}, {NULL, 0}};
static const struct word words_of_qsg_disp[] = {{"q_mgr", 0}, {"copy", 1}, {"shared", 2}, {"group", 3}, {NULL, 0}};
static const struct word words_of_appl_type[] = {{"unknown", -1}, {"no_context", 0}, {"cics", 1}, {"mvs", 2}, {"ims", 3}, {"unix", 6}, {"qmgr", 7}, {"os400", 8}, {"windows", 9}, {"windows_nt", 11}, {"nsk", 13}, {"notes_agent", 22}, {"user", 25}, {"java", 28}, {"wlm", 31}, {"spark", 65536}, {NULL, 0}};
static const struct word words_of_expiry_interval[] = {{"off", 0}, {NULL, 0}};
static const struct word words_of_platform[] = {{"unix", 3}, {NULL, 0}};
static const struct word words_of_command_server_control[] = {{"q_mgr", 0}, {"manual", 2}, {NULL, 0}};
static const struct word words_of_performance_event[] = {{"disabled", 0}, {"enabled", 1}, {NULL, 0}};
static const struct word words_of_q_type[] = {{"local", 1}, {"model", 2}, {"alias", 3}, {"remote", 6}, {NULL, 0}};

static const struct attribute attributes[] = {
    {1, 0, "appl_type", 0, words_of_appl_type},
    {2, 0, "coded_char_set_id", 0, NULL},
    {3, 0, "current_q_depth", 0, NULL},
    {4, 0, "def_input_open_option", 0, words_of_def_input_open_option},
    {5, 0, "def_persistence", 0, words_of_def_persistence},
    {6, 0, "def_priority", 0, NULL},
    {7, 0, "definition_type", 0, words_of_definition_type},
    {8, 0, "harden_get_backout", 0, words_of_harden_get_backout},
    {9, 0, "inhibit_get", 0, words_of_inhibit_get},
    {10, 0, "inhibit_put", 0, words_of_inhibit_put},
    {11, 0, "max_handles", 0, NULL},
    {12, 0, "usage", 0, words_of_usage},
    {13, 0, "max_msg_length", 0, NULL},
    {14, 0, "max_priority", 0, NULL},
    {15, 0, "max_q_depth", 0, NULL},
    {16, 0, "msg_delivery_sequence", 0, words_of_msg_delivery_sequence},
    {17, 0, "open_input_count", 0, NULL},
    {18, 0, "open_output_count", 0, NULL},
    {19, 0, "name_count", 0, NULL},
    {20, 0, "q_type", 0, words_of_q_type},
    {22, 0, "backout_threshold", 0, NULL},
    {23, 0, "shareability", 0, words_of_shareability},
    {24, 0, "trigger_control", 0, words_of_trigger_control},
    {25, 0, "trigger_interval", 0, NULL},
    {26, 0, "trigger_msg_priority", 0, NULL},
    {28, 0, "trigger_type", 0, words_of_trigger_type},
    {29, 0, "trigger_depth", 0, NULL},
    {31, 0, "command_level", 0, NULL},
    {32, 0, "platform", 0, words_of_platform},
    {33, 0, "max_uncommitted_msgs", 0, NULL},
    {39, 0, "expiry_interval", 0, words_of_expiry_interval},
    {40, 0, "q_depth_high_limit", 0, NULL},
    {41, 0, "q_depth_low_limit", 0, NULL},
    {42, 0, "q_depth_max_event", 0, words_of_q_depth_max_event},
    {43, 0, "q_depth_high_event", 0, words_of_q_depth_high_event},
    {44, 0, "q_depth_low_event", 0, words_of_q_depth_low_event},
    {46, 0, "q_service_interval_event", 0, words_of_q_service_interval_event},
    {53, 0, "performance_event", 0, words_of_performance_event},
    {54, 0, "q_service_interval", 0, NULL},
    {63, 0, "qsg_disp", 0, words_of_qsg_disp},
    {120, 0, "command_server_control", 0, words_of_command_server_control},
    {276, 0, "cap_expiry", 0, words_of_cap_expiry},
    {1115, 0, "authorities", 0, NULL},
    {2001, 256, "appl_id", 0, NULL},
    {2002, 48, "base_q_name", 0, NULL},
    {2003, 48, "command_input_q_name", 0, NULL},
    {2006, 48, "dead_letter_q_name", 0, NULL},
    {2007, 128, "env_data", 0, NULL},
    {2008, 48, "initiation_q_name", 0, NULL},
    {2009, 64, "description", 0, NULL},
    {2011, 64, "description", 0, NULL},
    {2012, 48, "process_name", 1, NULL},
    {2013, 64, "description", 0, NULL},
    {2014, 64, "description", 0, NULL},
    {2015, 48, "q_mgr_name", 1, NULL},
    {2016, 48, "q_name", 1, NULL},
    {2017, 48, "remote_q_mgr_name", 0, NULL},
    {2018, 48, "remote_q_name", 0, NULL},
    {2019, 48, "backout_requeue_q_name", 0, NULL},
    {2020, 0, "names", 0, NULL},
    {2021, 128, "user_data", 0, NULL},
    {2023, 64, "trigger_data", 0, NULL},
    {2024, 48, "xmit_q_name", 0, NULL},
    {2025, 48, "def_xmit_q_name", 0, NULL},
    {2032, 48, "q_mgr_identifier", 0, NULL},
    {2039, 12, "cf_struc_name", 0, NULL},
    {2120, 8, "version", 0, NULL},
};
#define ATTRIBUTE_COUNT (sizeof attributes / sizeof attributes[0])

#endif
