/** Columns of the loop that no answer shows. */
export const LOOP_ONLY = new Set([
  'driver',
  'ref',
  'observed',
  'generation',
  'next_at',
  'lease_owner',
  'lease_until',
  'fence',
  'attempts',
  'last_error',
  'deadline_at',
  'deleted_at',
  'parked_at',
]);
