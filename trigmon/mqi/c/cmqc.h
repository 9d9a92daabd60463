#include "mqi.h" /* the name by which programs include the MQI */
