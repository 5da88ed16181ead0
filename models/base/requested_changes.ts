// What an update changes. Forms, SDKs and Terraform send back all that they have read: a field with the value that the
// answer shows is no change, and neither checked again nor acted on (docs/decisions/0013).
import { isDeepStrictEqual } from 'node:util';

/** The fields of an input whose values differ from those that the resource shows under the same names. */
export function requestedChanges<Input extends object>(input: Input, present: object | null): Partial<Input> {
  const shown = (present ?? {}) as Record<string, unknown>;
  const changes = Object.entries(input).filter(
    ([name, value]) => value !== undefined && !isDeepStrictEqual(value, shown[name] ?? null),
  );
  return Object.fromEntries(changes) as Partial<Input>;
}

/**
 * Whether the field is all that an input has. With the value that is there already, such a request asks for an action
 * (grow, connect again); among other fields it is what a client has read.
 */
export function isOnlyField(input: object, field: string): boolean {
  return Object.entries(input).every(([name, value]) => name === field || value === undefined);
}
