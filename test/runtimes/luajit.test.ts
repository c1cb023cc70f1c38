/** LuaJIT in its interpreter, and in code of its JIT. */
import { missingRights } from '../support/fixtures.ts';
import { describeLuaScenarios } from './lua-scenarios.ts';
import { findLuajits } from './luajits.ts';

const MODES = ['jit', 'interpreter'] as const;
const luajits = missingRights ? [] : findLuajits();

describeLuaScenarios(
  luajits.flatMap((luajit) => MODES.map((mode) => ({ ...luajit, mode, frameType: 'luajit' as const }))),
);
