"""compile.py OUT.dll: compiles OUT.cs, with OUT.pdb beside it; with --embedded the PDB is in the assembly.

No package that these tests may fetch has a C# compiler of its own, but the npm package @typespec/http-client-csharp brings
along Roslyn as a library (1.0.0-alpha.20260929.2, dist/generator), which pythonnet of PyPI runs on a .NET 9 (dotnets.ts has
one). What it writes is committed, with its source.

    ROSLYN=…/package/dist/generator DOTNET_ROOT=build/dotnet-9.0.7 \
        REFERENCES=build/dotnet/dnv/net/runtime/.net/shared/Microsoft.NETCore.App/8.0.4 \
        python3 test/runtimes/dotnet/compile.py test/runtimes/dotnet/chain.dll
"""

import glob
import json
import os
import sys
import tempfile

from clr_loader import get_coreclr
from pythonnet import set_runtime

os.environ["DOTNET_SYSTEM_GLOBALIZATION_INVARIANT"] = "1"
with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
    framework = {"name": "Microsoft.NETCore.App", "version": "9.0.0"}
    json.dump({"runtimeOptions": {"tfm": "net9.0", "framework": framework}}, config)
    config.flush()
    root = os.path.abspath(os.environ["DOTNET_ROOT"])
    set_runtime(get_coreclr(runtime_config=config.name, dotnet_root=root))

import clr
from System.Collections.Generic import List
from System.IO import FileMode, FileStream
from System.Runtime.Loader import AssemblyLoadContext
from System.Text import Encoding

for library in "Microsoft.CodeAnalysis", "Microsoft.CodeAnalysis.CSharp":
    path = os.path.abspath(f"{os.environ['ROSLYN']}/{library}.dll")
    AssemblyLoadContext.Default.LoadFromAssemblyPath(path)
    clr.AddReference(path)

from Microsoft.CodeAnalysis import MetadataReference, OptimizationLevel, OutputKind, SyntaxTree
from Microsoft.CodeAnalysis.CSharp import (
    CSharpCompilation,
    CSharpCompilationOptions,
    CSharpParseOptions,
    CSharpSyntaxTree,
    LanguageVersion,
)
from Microsoft.CodeAnalysis.Emit import DebugInformationFormat, EmitOptions
from Microsoft.CodeAnalysis.Text import SourceText


def compile(out, is_embedded):
    stem = os.path.splitext(out)[0]
    name = os.path.basename(stem)
    with open(f"{stem}.cs") as source:
        text = SourceText.From(source.read(), Encoding.UTF8)
    trees = List[SyntaxTree]()
    trees.Add(CSharpSyntaxTree.ParseText(text, CSharpParseOptions(LanguageVersion.Latest), f"/src/{name}.cs"))
    references = List[MetadataReference]()
    for path in sorted(glob.glob(f"{os.environ['REFERENCES']}/*.dll")):
        if os.path.basename(path).startswith(("System", "mscorlib", "netstandard")):
            references.Add(MetadataReference.CreateFromFile(path))
    options = CSharpCompilationOptions(OutputKind.ConsoleApplication)
    options = options.WithOptimizationLevel(OptimizationLevel.Release).WithAllowUnsafe(True).WithDeterministic(True)
    compilation = CSharpCompilation.Create(name, trees, references, options)
    form = DebugInformationFormat.Embedded if is_embedded else DebugInformationFormat.PortablePdb
    emit = EmitOptions().WithDebugInformationFormat(form).WithPdbFilePath(f"{name}.pdb")
    assembly = FileStream(out, FileMode.Create)
    pdb = None if is_embedded else FileStream(f"{stem}.pdb", FileMode.Create)
    result = compilation.Emit(assembly, pdb, None, None, None, emit)
    for stream in assembly, pdb:
        if stream:
            stream.Close()
    problems = [d.ToString() for d in result.Diagnostics if "hidden" not in d.ToString()]
    print("\n".join(problems) or out)
    return 0 if result.Success else 1


sys.exit(compile(sys.argv[1], "--embedded" in sys.argv))
