// Operations and inputs that remove or overwrite what cannot be made again, or end access (`@destroys`). Keys without
// `may_destroy` are refused.
import { getNamedType, isInputObjectType, type GraphQLInputObjectType, type GraphQLSchema } from 'graphql';
import type { Identity } from '../core/context';
import { problem } from '../core/errors';
import { directiveOf } from './directives';
import type { RootField } from './operations';
import { valueAt, type InputPath } from './running_inputs';

/** An input that destroys where it is given, or where it has this value. */
export interface DestroyingInput {
  path: InputPath;
  value: string | null;
}

/** The inputs below an input type that destroy. */
export function readDestroyingInputs(schema: GraphQLSchema, type: GraphQLInputObjectType): DestroyingInput[] {
  return Object.values(type.getFields()).flatMap((field): DestroyingInput[] => {
    const destroys = directiveOf(schema, field, 'destroys');
    if (destroys) return [{ path: [field.name], value: (destroys.value as string | undefined) ?? null }];
    const inner = getNamedType(field.type);
    if (!isInputObjectType(inner)) return [];
    return readDestroyingInputs(schema, inner).map(({ path, value }) => ({ path: [field.name, ...path], value }));
  });
}

/** Whether a call destroys: by its operation, or by one of its inputs. */
export function destroysWith(
  { destroys, destroyingInputs, body }: Pick<RootField, 'destroys' | 'destroyingInputs' | 'body'>,
  args: Record<string, unknown>,
): boolean {
  return destroys || (body !== null && destroyingInputs.some((one) => isGiven(one, args[body.argument])));
}

/** @throws destroy_not_allowed */
export function requireDestroying(identity: Identity): void {
  if (!identity.may_destroy) throw problem('destroy_not_allowed');
}

/** @throws destroy_not_allowed if the input destroys, and the key may not */
export function requireDestroyingInputs(identity: Identity, inputs: readonly DestroyingInput[], input: unknown): void {
  if (identity.may_destroy) return;
  const found = inputs.find((one) => isGiven(one, input));
  if (!found) return;
  const name = found.path.join('.');
  const what = found.value === null ? `\`${name}\`` : `\`${name}\` with the value \`${found.value}\``;
  throw problem('destroy_not_allowed', `${what} removes what cannot be made again, and this key may not do that.`);
}

function isGiven({ path, value: only }: DestroyingInput, input: unknown): boolean {
  const value = valueAt(path, input);
  if (only !== null) return value === only;
  return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
}
