// The palette, loaded when it is first opened, or when the page has nothing else to do.
import { useEffect, useState } from 'preact/hooks';
import { paletteMode } from './keyboard';
import type * as PaletteModule from './palette/palette';

type Loaded = typeof PaletteModule;

const load = (): Promise<Loaded> => import('./palette/palette');
/** After the first page is there. */
const PRELOAD_MS = 2_000;

export function PaletteHost() {
  const [module, setModule] = useState<Loaded | null>(null);
  const mode = paletteMode.value;
  useEffect(() => {
    if (module) return undefined;
    const get = (): void => void load().then(setModule, () => void (paletteMode.value = null));
    if (mode) return get();
    const timer = setTimeout(get, PRELOAD_MS);
    return () => clearTimeout(timer);
  }, [mode, module]);
  if (!mode || !module) return null;
  return <module.Palette mode={mode} onClose={() => void (paletteMode.value = null)} />;
}
