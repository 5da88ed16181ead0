// Access keys at the gateway: one user each, which owns nothing and cannot create buckets. Grants are in the bucket
// policies.
import { checkpoint, type Desired } from '../../core/driver';
import type { AccessKeyDriver, AccessKeySpec } from '../../engines/object_storage';
import type { RgwApi, RgwOptions } from './api';
import {
  DRIVER_NAME,
  ensureRgwUser,
  findRgwUser,
  isRgwUserUpToDate,
  listRgwUsers,
  rgwUserMark,
  rgwFingerprint,
  rgwUserId,
  type DesiredUser,
} from './users';

export function rgwKeys(api: RgwApi, { userPrefix, url }: RgwOptions): AccessKeyDriver {
  const userOf = ({ id, spec }: Desired<AccessKeySpec>): DesiredUser => ({
    ...{
      uid: rgwUserId(userPrefix, 'key', id),
      mark: rgwUserMark('key', id),
      maxBuckets: -1,
      suspended: !spec.enabled,
    },
    credentials: { accessKeyId: spec.access_key_id, secretAccessKey: spec.secret },
  });
  return {
    name: DRIVER_NAME,
    fingerprint: (ctx) => rgwFingerprint(api, url, userPrefix, ctx),
    async observe(r, ctx) {
      const desired = userOf(r);
      const user = await findRgwUser(api, desired.uid, ctx);
      if (!user) return { state: 'absent' };
      if (user.display_name !== desired.mark)
        return { state: 'foreign', detail: 'The gateway has another user of this name.' };
      return { state: 'present', upToDate: isRgwUserUpToDate(user, desired), observed: {} };
    },
    async ensure(r, _obs, ctx) {
      checkpoint(ctx);
      const desired = userOf(r);
      const user = await findRgwUser(api, desired.uid, ctx);
      if (!user || !isRgwUserUpToDate(user, desired)) await ensureRgwUser(api, user, desired, ctx);
      return { ref: { driver: DRIVER_NAME, name: r.id } };
    },
    async remove(r, _obs, ctx) {
      checkpoint(ctx);
      const { uid, mark } = userOf(r);
      const user = await findRgwUser(api, uid, ctx);
      if (user?.display_name === mark) await api.admin('DELETE', 'user', { uid }, ctx);
    },
    list: (ctx) => listRgwUsers(api, userPrefix, 'key', ctx),
  };
}
