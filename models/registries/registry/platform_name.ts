/** In the place of the id of a project, of which no id is such a word: no account reaches what belongs to it. */
export const PLATFORM_PROJECT = 'platform';
/** Where images of releases are: `apps/app_…`. */
export const PLATFORM_REGISTRY = 'apps';
