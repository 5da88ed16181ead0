// Settings of V8, made before anything else is loaded.
import { setFlagsFromString } from 'node:v8';

// By default V8 lets the heap grow to several times of what lives before it looks for garbage: under load 215 MiB
// resident for 45 MiB that live. This and the smaller space for new objects (package.json, start) keep it below 200 MB
// on Node 24 and 160 on Node 20, for about a tenth more work on lists (docs/PERFORMANCE.md).
setFlagsFromString('--heap-growing-percent=35');
