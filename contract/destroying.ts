// Operations and inputs that remove or overwrite what cannot be made again, or end access (`@destroys`). Keys without
// `may_destroy` are refused.
import { getNamedType, isInputObjectType, type GraphQLInputObjectType, type GraphQLSchema } from 'graphql';
import type { Identity } from '../core/context';
import { problem } from '../core/errors';
import { directiveOf } from './directives';
import { valueAt, type InputPath } from './running_inputs';

/** An input that destroys where it is given, or where it has this value. */
export interface DestroyingInput {
  path: InputPath;
  value: string | null;
  /** Where this input is true, nothing is changed. */
  unless?: InputPath;
}

/** The inputs below an input type that destroy. */
export function readDestroyingInputs(schema: GraphQLSchema, type: GraphQLInputObjectType): DestroyingInput[] {
  return Object.values(type.getFields()).flatMap((field): DestroyingInput[] => {
    const destroys = directiveOf(schema, field, 'destroys');
    if (destroys) {
      const { value = null, unless } = destroys as { value?: string; unless?: string };
      return [{ path: [field.name], value, ...(unless !== undefined && { unless: [unless] }) }];
    }
    const inner = getNamedType(field.type);
    if (!isInputObjectType(inner)) return [];
    return readDestroyingInputs(schema, inner).map(({ path, value, unless }) => ({
      ...{ path: [field.name, ...path], value },
      ...(unless && { unless: [field.name, ...unless] }),
    }));
  });
}

/** @throws destroy_not_allowed */
export function requireDestroying(identity: Identity): void {
  if (!identity.may_destroy) throw problem('destroy_not_allowed');
}

/** @throws destroy_not_allowed if the input destroys, and the key may not */
export function requireDestroyingInputs(identity: Identity, inputs: readonly DestroyingInput[], input: unknown): void {
  if (identity.may_destroy) return;
  const found = inputs.find((one) => isDestroying(one, input));
  if (!found) return;
  const name = found.path.join('.');
  const what = found.value === null ? `\`${name}\`` : `\`${name}\` with the value \`${found.value}\``;
  throw problem('destroy_not_allowed', `${what} removes what cannot be made again, and this key may not do that.`);
}

/** Whether an input has what destroys. */
export function isDestroying({ path, value: only, unless }: DestroyingInput, input: unknown): boolean {
  if (unless && valueAt(unless, input) === true) return false;
  const value = valueAt(path, input);
  if (only !== null) return String(value) === only;
  return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
}
