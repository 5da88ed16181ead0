// Object lock of a bucket, as the API switches it on and gives new versions a retention.
import type { Context } from '../../../core/context';
import { problem, validationFailed, type FieldError } from '../../../core/errors';
import type { DefaultRetention } from '../../../core/protocols/objects';
import type { BucketRetentionInput } from '../../../schema/types';

interface Lock {
  object_lock: boolean;
  default_retention: DefaultRetention | null;
}

interface Input {
  object_lock?: boolean | null;
  default_retention?: BucketRetentionInput | null;
  versioning?: boolean | null;
}

/**
 * @param present what the bucket has; of one that is created, without `versioning`, which comes with the lock
 * @throws validation_failed, engine_unavailable where a gateway keeps the objects
 */
export function lockChanges({ config }: Context, present: Lock & { versioning?: boolean }, input: Input): Lock {
  const object_lock = input.object_lock ?? present.object_lock;
  const default_retention =
    input.default_retention === undefined ? present.default_retention : retentionOf(input.default_retention);
  const mistakes = mistakesOf(present, input, { object_lock, default_retention });
  if (mistakes.length) throw validationFailed(mistakes);
  if (object_lock && config.rgwUrl !== null)
    throw problem('engine_unavailable', 'Object lock is not offered with a RADOS Gateway.');
  return { object_lock, default_retention };
}

function mistakesOf(present: Parameters<typeof lockChanges>[1], input: Input, next: Lock): FieldError[] {
  const mistake = (field: string, detail: string): FieldError => ({ field, code: 'depends_on', detail });
  const { object_lock } = next;
  const mistakes: FieldError[] = [];
  if (present.object_lock && !object_lock) mistakes.push(mistake('object_lock', 'is never switched off'));
  if (object_lock && (present.versioning === false || input.versioning === false))
    mistakes.push(
      present.object_lock
        ? mistake('versioning', 'stays on with `object_lock`')
        : mistake('object_lock', 'needs `versioning`'),
    );
  if (input.default_retention && !object_lock) mistakes.push(mistake('default_retention', 'needs `object_lock`'));
  const { days, years } = input.default_retention ?? {};
  if (input.default_retention && (days == null) === (years == null))
    mistakes.push(mistake('default_retention.days', 'is given, or `years`: one of both'));
  return mistakes;
}

function retentionOf(input: BucketRetentionInput | null): DefaultRetention | null {
  return input && { mode: input.mode, days: input.days ?? null, years: input.years ?? null };
}
