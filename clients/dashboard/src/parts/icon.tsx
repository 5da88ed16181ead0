// Icons of Lucide (https://lucide.dev, version 1.62.0, ISC licence: see NOTICE): those that pages use, as paths.
import paths from './icon_paths.json';

export type IconName = keyof typeof paths;

/** Beside a word that says the same: it is not read out. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
