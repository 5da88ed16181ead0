// What a shared cache must do, rule by rule, in a form that any engine can be asked.
import { PARTS_RULES, VALIDATION_RULES, VARYING_RULES } from './cdn_rules_found';
import {
  AGES_MALFORMED_RULES,
  CONDITIONS_MALFORMED_RULES,
  DATES_MALFORMED_RULES,
  DIRECTIVES_MALFORMED_RULES,
  RENEWALS_RULES,
  TAGS_RULES,
  TARGETED_MALFORMED_RULES,
} from './cdn_rules_malformed';
import { SHOWN_RULES, STALE_RULES, WRITES_RULES } from './cdn_rules_shown';
import { FRESHNESS_RULES, PEOPLE_RULES, STATUSES_RULES, TARGETED_RULES } from './cdn_rules_stored';
import type { Rule } from './cdn_rule';

export const RULES: readonly Rule[] = [
  ...FRESHNESS_RULES,
  ...TARGETED_RULES,
  ...STATUSES_RULES,
  ...PEOPLE_RULES,
  ...VARYING_RULES,
  ...VALIDATION_RULES,
  ...PARTS_RULES,
  ...STALE_RULES,
  ...WRITES_RULES,
  ...SHOWN_RULES,
  ...TARGETED_MALFORMED_RULES,
  ...DATES_MALFORMED_RULES,
  ...AGES_MALFORMED_RULES,
  ...DIRECTIVES_MALFORMED_RULES,
  ...RENEWALS_RULES,
  ...TAGS_RULES,
  ...CONDITIONS_MALFORMED_RULES,
];
