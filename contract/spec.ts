// The directive @spec as an object, and its checks of a single value.
import type { GraphQLArgument, GraphQLField, GraphQLInputField, GraphQLNamedType, GraphQLSchema } from 'graphql';
import type { FieldError } from '../core/errors';
import { patternDetail } from '../core/formats/format_details';
import { formats, type FormatName, formatMistake } from '../core/formats/formats';
import { directiveOf } from './directives';

export interface Spec {
  min?: number;
  max?: number;
  minLength?: number;
  maxLength?: number;
  maxBytes?: number;
  minItems?: number;
  maxItems?: number;
  unique?: boolean;
  uniqueBy?: string;
  pattern?: string;
  format?: string;
  notNull?: boolean;
  default?: string;
  example?: string;
  sorts?: string[];
  page?: number;
  maxPage?: number;
  commaList?: boolean;
}

/** The @spec of an argument, input field, field or scalar; empty where there is none. */
export function specOf(
  schema: GraphQLSchema,
  node: GraphQLArgument | GraphQLInputField | GraphQLField<unknown, unknown> | GraphQLNamedType,
): Spec {
  return directiveOf(schema, node, 'spec') ?? {};
}

type Report = (code: FieldError['code'], detail: string) => void;

/** A check of one value: reports errors and returns the normalised value. */
export type Check = (value: unknown, report: Report) => unknown;

/** Bounds of a number. A page size above the largest is taken as the largest (docs/contract/resources.md §0.3). */
export function numberCheck(spec: Spec): Check {
  if (spec.page !== undefined) return pageSizeCheck(spec.maxPage ?? spec.page);
  return (value, report) => {
    const number = value as number;
    if (spec.min !== undefined && number < spec.min) report('too_small', `must be at least ${spec.min}`);
    if (spec.max !== undefined && number > spec.max) report('too_large', `must be at most ${spec.max}`);
    return value;
  };
}

function pageSizeCheck(largest: number): Check {
  return (value, report) => {
    if ((value as number) < 1) report('too_small', 'must be at least 1');
    return Math.min(value as number, largest);
  };
}

/** Length, pattern and format of a string; NUL is never accepted (PostgreSQL can't store it). */
export function stringCheck(spec: Spec): Check {
  const pattern = spec.pattern ? new RegExp(spec.pattern, 'u') : null;
  const format = spec.format && spec.format in formats ? formats[spec.format as FormatName] : null;
  const detail = patternDetail(spec.pattern ?? '') ?? 'does not have the format of this field';
  const bounds = { ...(LENGTHS[spec.format ?? ''] ?? {}), ...spec };
  return (value, report) => {
    const text = value as string;
    if (text.includes('\0')) return report('invalid_format', 'must not contain NUL');
    if (!text.isWellFormed()) return report('invalid_format', 'must not contain an unpaired surrogate');
    const normal = format ? format(text) : { value: text };
    if (!checkLength(normal?.value ?? text.trim(), bounds, report)) return value;
    if (!normal) return report('invalid_format', formatMistake(spec.format ?? '', text));
    if (spec.sorts && !spec.sorts.includes(normal.value.replace(/^-/, '')))
      report('not_in_enum', `must be one of ${spec.sorts.join(', ')}, with - in front for descending`);
    if (pattern && !pattern.test(normal.value)) report('invalid_format', detail);
    return normal.value;
  };
}

/** Lengths that belong to a format, so that a name of 101 characters is too long rather than badly formed. */
const LENGTHS: Record<string, Spec> = {
  label: { minLength: 1, maxLength: 100 },
  slug: { minLength: 3, maxLength: 40 },
  hostname: { minLength: 1, maxLength: 253 },
  zone_name: { minLength: 1, maxLength: 253 },
};

function checkLength(text: string, spec: Spec, report: Report): boolean {
  const length = spec.minLength === undefined && spec.maxLength === undefined ? 0 : [...text].length;
  if (spec.minLength !== undefined && length < spec.minLength)
    report('too_short', `must have at least ${spec.minLength} characters`);
  else if (spec.maxLength !== undefined && length > spec.maxLength)
    report('too_long', `must have at most ${spec.maxLength} characters`);
  else if (spec.maxBytes !== undefined && Buffer.byteLength(text) > spec.maxBytes)
    report('too_long', `must have at most ${spec.maxBytes} bytes`);
  else return true;
  return false;
}

/** Number of entries and their difference. */
export function listCheck(spec: Spec): Check {
  return (value, report) => {
    const list = value as unknown[];
    if (spec.minItems !== undefined && list.length < spec.minItems)
      report('too_few', `must have at least ${spec.minItems} entries`);
    if (spec.maxItems !== undefined && list.length > spec.maxItems)
      report('too_many', `must have at most ${spec.maxItems} entries`);
    if (spec.unique && new Set(list.map((entry) => JSON.stringify(entry))).size < list.length)
      report('duplicate', 'holds an entry twice');
    return value;
  };
}
