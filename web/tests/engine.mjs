// The page's own loader of the module, for node.
import { build } from 'vite';
import { fileURLToPath } from 'node:url';

export async function startEngine(bytes, catalogue) {
  const built = await build({
    configFile: false,
    logLevel: 'error',
    build: {
      write: false,
      target: 'es2022',
      lib: { entry: fileURLToPath(new URL('../src/engine/module.ts', import.meta.url)), formats: ['es'] },
    },
  });
  const [{ code }] = (Array.isArray(built) ? built[0] : built).output;
  const { Engine } = await import(`data:text/javascript;base64,${Buffer.from(code).toString('base64')}`);
  return Engine.start(await WebAssembly.compile(bytes), catalogue);
}
