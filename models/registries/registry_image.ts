import { Resource } from '../base/resource';

/** A tag of a repository, as lists show it. Tags come and go through the registry's own API. */
export class RegistryImage extends Resource {
  static readonly table = 'registry_tags';
  static readonly kind = 'registry_image';
  static readonly idPrefix = 'rim';
  static override readonly filters = { repository: 'repository = ?', tag: 'tag = ?' };
  static override readonly sorts = ['pushed_at', 'repository'];
  static override readonly defaultSort = '-pushed_at';

  declare repository: string;
  declare tag: string;
  declare digest: string;
  declare media_type: string;
  declare size_bytes: number;
  declare pushed_at: string;
}
