"""Every fault, by name, in the order of the law."""

from __future__ import annotations

from tests.mutations import (
    faults_of_changes,
    faults_of_counting,
    faults_of_effects,
    faults_of_events,
    faults_of_extensions,
    faults_of_getting,
    faults_of_poison,
    faults_of_puts_and_closes,
    faults_of_putting,
    faults_of_requirements,
    faults_of_sharing,
    faults_of_skipping,
    faults_of_stamps,
    faults_of_the_table,
    faults_of_units,
)

PAGES = (
    faults_of_the_table,
    faults_of_requirements,
    faults_of_counting,
    faults_of_puts_and_closes,
    faults_of_putting,
    faults_of_getting,
    faults_of_changes,
    faults_of_stamps,
    faults_of_effects,
    faults_of_extensions,
    faults_of_units,
    faults_of_skipping,
    faults_of_poison,
    faults_of_sharing,
    faults_of_events,
)
FAULTS = {fault.name: fault for page in PAGES for fault in page.FAULTS}
