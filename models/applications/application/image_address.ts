// Which registries images may come from: this installation's own, and public ones.
import { isPrivateHost } from '../../../core/protocols/addresses';
import type { Context } from '../../../core/context';
import type { FieldError } from '../../../core/errors';
import { parseImageReference } from '../../../core/protocols/image_reference';

/** @param image well formed. Its name is not resolved here: the code that pulls checks the resolved address. */
export function imageMistakes({ config }: Context, field: string, image: string): FieldError[] {
  const { host } = parseImageReference(image);
  if (config.allowPrivateAddresses || host === config.registryHost) return [];
  if (!isPrivateHost(host.replace(/:\d+$/, ''))) return [];
  return [{ field, code: 'invalid_format', detail: 'must be in a registry with a public address' }];
}
